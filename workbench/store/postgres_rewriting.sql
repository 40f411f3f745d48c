-- name: make_calls
CREATE TEMPORARY TABLE calls (
    called TEXT NOT NULL,
    digest TEXT NOT NULL,
    given TEXT NOT NULL,
    answer TEXT,
    PRIMARY KEY (called, digest)
);

-- name: noted
SELECT called, digest, given FROM calls;

-- name: answer
UPDATE calls SET answer = :answer WHERE called = :called AND digest = :digest;
