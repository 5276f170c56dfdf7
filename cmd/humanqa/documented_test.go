package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"humanqa/internal/testing/must"
)

// The documents whose commands tests run as they stand there.
var documents = []string{"../../docs/eventstore.md", "../../docs/event-zero.md", "../../docs/analytics.md"}

// byHand is what a document says of a command that no test runs.
const byHand = "run by hand"

var (
	shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")
	shellWord  = regexp.MustCompile(`"[^"]*"|\S+`)
	runInTests = regexp.MustCompile("asWritten\\(\\s*`([^`]+)`")
)

// documentedCommands are the lines of the documents' blocks of commands, without
// what is said about them, and with that.
func documentedCommands(t testing.TB) map[string]string {
	t.Helper()
	commands := map[string]string{}
	for _, file := range documents {
		text, err := os.ReadFile(file)
		must.NoError(t, err)
		for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(block[1]) {
				command, remark, _ := strings.Cut(strings.TrimSpace(line), "#")
				if command = strings.TrimSpace(command); command != "" {
					commands[command] = strings.TrimSpace(remark)
				}
			}
		}
	}
	return commands
}

func TestEveryCommandOfADocumentIsRunAsItIsWrittenOrSaysThatItIsNot(t *testing.T) {
	t.Parallel()
	var run []string
	sources, err := filepath.Glob("*_test.go")
	must.NoError(t, err)
	for _, file := range sources {
		text, err := os.ReadFile(file)
		must.NoError(t, err)
		for _, m := range runInTests.FindAllStringSubmatch(string(text), -1) {
			run = append(run, m[1])
		}
	}
	commands := documentedCommands(t)
	for command, remark := range commands {
		if slices.Contains(run, command) == strings.Contains(remark, byHand) {
			t.Errorf("no test runs %s, or one does and the document has it %s", command, byHand)
		}
	}
	if len(commands) < 8 {
		t.Errorf("only %d commands found", len(commands))
	}
}

// asWritten is a command of a document: what it sets, and what follows on
// bin/humanqa. In each pair the second stands for the first, which the command
// has: an address of an example, say.
func (p *program) asWritten(line string, pairs ...string) (environ, args []string) {
	p.t.Helper()
	if _, found := documentedCommands(p.t)[line]; !found {
		p.t.Fatalf("no document has the command %s", line)
	}
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(line, pairs[i]) {
			p.t.Fatalf("%s has no %s", line, pairs[i])
		}
	}
	var words []string
	for _, word := range shellWord.FindAllString(strings.NewReplacer(pairs...).Replace(line), -1) {
		words = append(words, strings.Trim(strings.Replace(word, `="`, `=`, 1), `"`))
	}
	at := slices.Index(words, "bin/humanqa")
	if at < 0 {
		p.t.Fatalf("%s is no command of ours", line)
	}
	return words[:at], words[at+1:]
}

// written runs what asWritten gave, as cli does.
func (p *program) written(out any, environ, args []string) {
	p.t.Helper()
	var printed, complaint bytes.Buffer
	cmd := p.command(context.Background(), append([]string{"--json"}, args...)...)
	cmd.Env = slices.Concat(p.environ, environ)
	cmd.Stdout, cmd.Stderr = &printed, &complaint
	if err := cmd.Run(); err != nil {
		p.t.Fatalf("humanqa %s: %v: %s", strings.Join(args, " "), err, complaint.String())
	}
	if err := json.Unmarshal(printed.Bytes(), out); err != nil {
		p.t.Fatalf("humanqa %s printed %q: %v", strings.Join(args, " "), printed.String(), err)
	}
}
