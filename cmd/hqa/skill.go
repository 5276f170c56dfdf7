package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"humanqa/integrations/skill"
)

// The section of an AGENTS.md stands between these lines, so that a later version replaces it.
const (
	sectionBegin = "<!-- hqa: begin -->"
	sectionEnd   = "<!-- hqa: end -->"
)

// writeSkill installs the skill in a folder of skills.
func (c *initCmd) writeSkill(a *app) error {
	folder := cmp.Or(c.File, filepath.Join(".agents", "skills"))
	file := filepath.Join(folder, skill.Name, "SKILL.md")
	if old, err := os.ReadFile(a.path(file)); err == nil && string(old) != skill.Text && !c.Force {
		return usage("%s is there already, and differs: add --force to replace it", file)
	}
	if err := a.write(file, skill.Text, os.O_TRUNC); err != nil {
		return err
	}
	return a.print(map[string]any{"file": file}, "wrote %s", file)
}

// writeAgents puts the section into an AGENTS.md, or replaces the one that is there. The rest of the
// file stays.
func (c *initCmd) writeAgents(a *app) error {
	file := cmp.Or(c.File, "AGENTS.md")
	raw, err := os.ReadFile(a.path(file))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	section := sectionBegin + "\n" + skill.AgentsSection + sectionEnd + "\n"
	text := string(raw)
	before, rest, begun := strings.Cut(text, sectionBegin)
	_, after, ended := strings.Cut(rest, sectionEnd)
	switch {
	case begun && ended:
		text = before + section + strings.TrimPrefix(after, "\n")
	case begun || strings.Contains(text, sectionEnd):
		return usage("%s has only one of the lines %s and %s: mend it first", file, sectionBegin, sectionEnd)
	case text == "":
		text = "# For coding agents\n\n" + section
	default:
		text = strings.TrimRight(text, "\n") + "\n\n" + section
	}
	if err := a.write(file, text, os.O_TRUNC); err != nil {
		return err
	}
	return a.print(map[string]any{"file": file}, "wrote the section on human tests into %s", file)
}

// write writes a file of the repository, with its folders. how is os.O_TRUNC, or os.O_EXCL for
// one that must not be there.
func (a *app) write(file, text string, how int) error {
	path := a.path(file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|how, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
