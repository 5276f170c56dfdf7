// Package inter is the font of all pages: Inter, its Latin letters, in every weight. A page
// that has it looks the same on every machine.
package inter

import _ "embed"

// Name is the file's name in the styles, and Type its content type.
const (
	Name = "inter.woff2"
	Type = "font/woff2"
)

// File is the font as published; its licence stands beside it. The format is compressed.
//
//go:embed inter.woff2
var File []byte
