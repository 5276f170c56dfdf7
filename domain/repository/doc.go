// Package repository runs decisions against the log: load and fold a stream, decide,
// append what follows at the expected revision, and decide again when another process
// wrote first. It knows no aggregate and no command.
package repository
