package main

import (
	"fmt"
	"reflect"
	"strings"
)

// setting is one HUMANQA_* variable, as it is told about.
type setting struct {
	name      string
	byDefault string // what holds without it; empty: nothing does
	about     string
}

// settings is the one table of them, in the order that they are told in.
func settings() []setting {
	var all []setting
	for field := range reflect.TypeFor[environment]().Fields() {
		s := setting{name: field.Tag.Get("env"), byDefault: field.Tag.Get("unset"), about: field.Tag.Get("about")}
		if value := field.Tag.Get("envDefault"); value != "" {
			s.byDefault = value
		}
		all = append(all, s)
	}
	return all
}

// Help is shown by humanqa serve --help. Lines that are indented are not
// wrapped: what they say may be longer than a terminal is wide, the table stays
// one.
func (c *serveCmd) Help() string {
	var text strings.Builder
	text.WriteString("The environment settles the rest:\n")
	for _, s := range settings() {
		fmt.Fprintf(&text, "\n\t%-34s  %s", s.name, s.about)
		if s.byDefault != "" {
			fmt.Fprintf(&text, " (%s)", s.byDefault)
		}
	}
	return text.String()
}
