-- name: add_event
INSERT INTO events (at, kind, actor, subject, session, data)
VALUES (:at, :kind, :actor, :subject, :session, :data);
