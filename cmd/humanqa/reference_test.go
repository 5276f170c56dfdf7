package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"humanqa/cmd/humanqa/service"
	"humanqa/internal/testing/must"
)

var update = flag.Bool("update", false, "write the reference of settings and commands anew")

const generated = "<!-- Generated: go test ./cmd/humanqa -run TestTheReferenceIsWhole -update -->\n\n"

// The reference is made of the settings' one struct and of the commands' own help.
func TestTheReferenceIsWhole(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"../../docs/settings.md": settingsReference(),
		"../../docs/commands.md": commandsReference(t),
	} {
		if *update {
			must.NoError(t, os.WriteFile(file, []byte(want), 0o644))
			continue
		}
		got, err := os.ReadFile(file)
		must.NoError(t, err)
		if string(got) != want {
			t.Errorf("%s is not what the program says: run go test ./cmd/humanqa -run %s -update", file, t.Name())
		}
	}
}

func settingsReference() string {
	var text strings.Builder
	text.WriteString(generated + "# Settings\n\nThe service and its commands read these variables of the environment. " +
		"An empty value counts as unset. An unknown\nname that begins with `HUMANQA_` stops the start.\n\n| Variable | Default | |\n|---|---|---|\n")
	for _, s := range service.Settings() {
		byDefault := s.Value
		if byDefault != "" && !strings.Contains(byDefault, " ") {
			byDefault = "`" + byDefault + "`"
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s |\n", s.Name, byDefault, s.About)
	}
	return text.String()
}

func commandsReference(t *testing.T) string {
	t.Helper()
	parser, err := newParser(new(commands), kong.Vars{"user": "the user's name"})
	must.NoError(t, err)
	var text strings.Builder
	text.WriteString(generated + "# Commands\n\nEvery command takes `--json`, which prints one JSON object instead of text, and `--help`. " +
		"All commands work\nwhile the service runs and while it is stopped, unless they say otherwise.\n\n" +
		"A command that changes something is kept on record. `--by` is the name of the operator, and `--reason` the reason. Without\n" +
		"them the record names the user of this machine.\n")
	var walk func(*kong.Node)
	walk = func(n *kong.Node) {
		switch {
		case n.Type == kong.CommandNode && len(n.Children) > 0:
			fmt.Fprintf(&text, "\n## %s\n\n%s\n", n.Name, n.Help)
		case n.Type == kong.CommandNode:
			writeCommand(&text, n)
		}
		for _, child := range n.Children {
			walk(child)
		}
	}
	walk(parser.Model.Node)
	return text.String()
}

func writeCommand(text *strings.Builder, n *kong.Node) {
	depth := "##"
	if n.Parent.Type == kong.CommandNode {
		depth = "###"
	}
	line := n.FullPath()
	for _, argument := range n.Positional {
		line += " " + argument.Summary()
	}
	fmt.Fprintf(text, "\n%s `%s`\n\n%s\n", depth, line, n.Help)
	var told []string
	for _, argument := range n.Positional {
		told = append(told, fmt.Sprintf("- `%s`: %s", argument.Name, argument.Help))
	}
	for _, f := range n.Flags {
		if f.HasDefault && (f.Name == "by" || f.Name == "reason") {
			continue // told above
		}
		name := "--" + f.Name
		if !f.IsBool() {
			name += "=" + cmp.Or(f.PlaceHolder, strings.ToUpper(f.Name))
		}
		help := f.Help
		switch {
		case f.Required && len(f.Xor) > 0:
			help += " One of this group is required."
		case f.Required:
			help += " Required."
		case f.HasDefault && f.Default != "" && f.Default != "0" && !strings.Contains(help, "("):
			help += " Default: " + f.Default + "."
		}
		told = append(told, fmt.Sprintf("- `%s`: %s", name, help))
	}
	if len(told) > 0 {
		text.WriteString("\n" + strings.Join(told, "\n") + "\n")
	}
}
