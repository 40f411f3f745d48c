-- name: get
SELECT joined, name, first_contact_url, first_contact_rid, changed_by, machine FROM koi_network WHERE one = 1;

-- name: set
INSERT INTO koi_network (one, joined, name, first_contact_url, first_contact_rid, changed_by, machine, changed_at)
VALUES (1, 1, :name, :url, :rid, :by, :machine, :now)
ON CONFLICT (one) DO UPDATE SET joined = 1, name = excluded.name, first_contact_url = excluded.first_contact_url,
    first_contact_rid = excluded.first_contact_rid, changed_by = excluded.changed_by, machine = excluded.machine, changed_at = excluded.changed_at;

-- name: leave
INSERT INTO koi_network (one, joined, name, changed_by, changed_at) VALUES (1, 0, :name, :by, :now)
ON CONFLICT (one) DO UPDATE SET joined = 0, changed_by = excluded.changed_by, changed_at = excluded.changed_at;
