package service

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
)

// Setting is one HUMANQA_* variable, as documents and help show it.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"` // without secrets; empty: there is none
	From  string `json:"from"`  // flag, environment, the settings file, or default
	About string `json:"-"`
}

// unset is the source of a setting with its default.
const unset = "default"

// Settings are all of them with their defaults, in the order of the documents.
func Settings() (all []Setting) {
	for field := range reflect.TypeFor[environment]().Fields() {
		all = append(all, Setting{
			Name: field.Tag.Get("env"), Value: cmp.Or(field.Tag.Get("envDefault"), field.Tag.Get("unset")), From: unset,
			About: field.Tag.Get("about"),
		})
	}
	return all
}

// Settled is every setting with the value in force. file is the settings file, of which
// fromFile names the settings in force; flags are those that a flag overrides.
func (c Config) Settled(file string, fromFile []string, flags map[string]string) []Setting {
	all := Settings()
	for i := range all {
		s := &all[i]
		if value, given := c.given[s.Name]; given {
			s.Value, s.From = value, "environment"
			if slices.Contains(fromFile, s.Name) {
				s.From = file
			}
		}
		if value, given := flags[s.Name]; given {
			s.Value, s.From = value, "flag"
		}
	}
	return all
}

// ReadEnvFile reads a settings file, as systemd reads one: a line is NAME=value, in quotes
// or not, or begins with # or ;. The environment wins: it gives the environment with the
// file's lines before, and the settings that the file settles.
func ReadEnvFile(file string, environ []string) (both, settled []string, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read the settings: %w", err)
	}
	given := map[string]bool{}
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		given[name] = value != ""
	}
	for i, line := range strings.Split(string(content), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		name, value, found := strings.Cut(line, "=")
		if name = strings.TrimSpace(name); !found || name == "" || strings.ContainsAny(name, " \t") {
			return nil, nil, fmt.Errorf("%s:%d is no line such as HUMANQA_ADDR=127.0.0.1:8080", file, i+1) // its text may be secret
		}
		value = strings.TrimSpace(value)
		if n := len(value); n > 1 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
			value = value[1 : n-1]
		}
		if given[name] || value == "" {
			continue
		}
		both, settled = append(both, name+"="+value), append(settled, name)
	}
	return append(both, environ...), settled, nil
}
