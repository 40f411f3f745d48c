-- A personality that changed is found by its reference, as events name it.

CREATE INDEX personalities_by_reference ON personalities ((name || '/' || version));
