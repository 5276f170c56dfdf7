package service

import (
	"reflect"
)

// Setting is one HUMANQA_* variable, as documents and help show it.
type Setting struct {
	Name    string
	Default string // its value if unset; empty: none
	About   string
}

// Settings are all of them, in the order of the documents.
func Settings() []Setting {
	var all []Setting
	for field := range reflect.TypeFor[environment]().Fields() {
		s := Setting{Name: field.Tag.Get("env"), Default: field.Tag.Get("unset"), About: field.Tag.Get("about")}
		if value := field.Tag.Get("envDefault"); value != "" {
			s.Default = value
		}
		all = append(all, s)
	}
	return all
}
