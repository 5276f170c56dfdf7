package main

import (
	"strings"
	"testing"

	"github.com/caarlos0/env/v11"
)

func TestTheHelpNamesEverySetting(t *testing.T) {
	t.Parallel()
	fields, err := env.GetFieldParams(&environment{})
	if err != nil {
		t.Fatal(err)
	}
	help := new(serveCmd).Help()
	for _, f := range fields {
		if !strings.Contains(help, "\n"+f.Key+" ") {
			t.Errorf("humanqa serve --help does not name %s", f.Key)
		}
		if f.DefaultValue != "" && !strings.Contains(help, f.DefaultValue) {
			t.Errorf("humanqa serve --help does not name %s's default %s", f.Key, f.DefaultValue)
		}
	}
}
