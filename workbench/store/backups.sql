-- name: copy
VACUUM INTO :path;
