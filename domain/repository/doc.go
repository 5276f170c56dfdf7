// Package repository runs decisions against the log. It loads and folds a stream,
// decides, and appends the events at the expected revision. It decides again when another
// process wrote first. It knows no aggregate and no command.
package repository
