-- name: size
SELECT {{database_bytes}} AS bytes;
