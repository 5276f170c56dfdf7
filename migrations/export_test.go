package migrations

// UpFrom is up, for tests with files of their own.
var UpFrom = up
