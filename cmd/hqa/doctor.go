package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"humanqa/cmd/hqa/pipeline"
	"humanqa/cmd/hqa/wait"
	"humanqa/integrations/clients/go/humanqa"
)

type doctorCmd struct{}

// finding is one thing that was looked at.
type finding struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
	Told string `json:"told"` // the result, or the next step
}

// Run looks at everything that a test needs. It charges nothing.
func (doctorCmd) Run(ctx context.Context, a *app) error {
	findings, err := a.look(ctx)
	for _, f := range findings {
		mark := "ok  "
		if !f.OK {
			mark = "FAIL"
		}
		if err := a.print(f, "%s  %-9s %s", mark, f.What, oneLine(f.Told)); err != nil {
			return err
		}
	}
	if err != nil {
		return verdict(exitOf(err))
	}
	return nil
}

// look stops at the first fault that keeps the next check from working; the error names
// it.
func (a *app) look(ctx context.Context) (findings []finding, err error) {
	found := func(what string, err error, format string, args ...any) error {
		f := finding{What: what, OK: err == nil, Told: fmt.Sprintf(format, args...)}
		if err != nil {
			f.Told = err.Error()
		}
		findings = append(findings, f)
		return err
	}
	provider := "none: a submission is remembered in " + a.store.Dir()
	if run := pipeline.Find(a.env, false); run.Known() {
		provider = run.Provider + ": a repeated step pays once"
	}
	_ = found("pipeline", nil, "%s", provider) // it cannot fail
	git, err := exec.LookPath("git")
	if err != nil {
		git = "not in PATH: only hqa run --changed needs it"
	}
	_ = found("git", nil, "%s", git) // it cannot fail
	client, err := a.client()
	if err := found("login", err, "%s", "a key is there"); err != nil {
		return findings, err
	}
	began := time.Now()
	var ready struct{}
	if err := found("service", client.Get(ctx, "/readyz", &ready), "%s answers", client.Base()); err != nil {
		return findings, err
	}
	_ = found("network", nil, "an answer takes %d ms", time.Since(began).Milliseconds()) // it cannot fail
	var credits humanqa.Balance
	if err := found("key", client.Get(ctx, "/v1/credits", &credits), "it is accepted"); err != nil {
		return findings, err
	}
	_ = found("credits", nil, "%d are left", credits.Available) // it cannot fail
	e, err := estimate(ctx, client, newJob{URL: "https://example.com/", Title: "Estimate", Description: "Estimate", JobType: "general_qa"})
	if err == nil && e.CreditsRequired > e.CreditsAvailable {
		err = refused("a test costs %d credits: add some on the dashboard", e.CreditsRequired)
	}
	if err := found("price", err, "a test costs %d credits", e.CreditsRequired); err != nil {
		return findings, err
	}
	streamed := make(chan error, 1)
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	go func() { streamed <- wait.Follow(ctx, client, "", func() { streamed <- nil }, func(string, string) {}) }()
	if err := <-streamed; err != nil {
		_ = found("stream", nil, "a wait polls: %s", err) // slower, but it works
	} else {
		_ = found("stream", nil, "events arrive as they happen") // it cannot fail
	}
	return findings, nil
}

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints a script of the commands and flags as they are.
func (c *completionCmd) Run(a *app, k *kong.Kong) error {
	var names []string
	flags := map[string][]string{}
	for _, n := range k.Model.Children {
		names = append(names, n.Name)
		for _, f := range n.Flags {
			flags[n.Name] = append(flags[n.Name], "--"+f.Name)
		}
		flags[n.Name] = append(flags[n.Name], "--json", "--help")
	}
	var b strings.Builder
	switch c.Shell {
	case "fish":
		fmt.Fprintf(&b, "complete -c hqa -n __fish_use_subcommand -f -a %q\n", strings.Join(names, " "))
		for _, name := range names {
			for _, f := range flags[name] {
				fmt.Fprintf(&b, "complete -c hqa -n '__fish_seen_subcommand_from %s' -l %s\n", name, strings.TrimPrefix(f, "--"))
			}
		}
	default:
		if c.Shell == "zsh" {
			b.WriteString("autoload -U +X bashcompinit && bashcompinit\n")
		}
		b.WriteString("_hqa() {\n\tlocal word=${COMP_WORDS[COMP_CWORD]} words=\n\tif ((COMP_CWORD == 1)); then words=")
		fmt.Fprintf(&b, "%q; else case ${COMP_WORDS[1]} in\n", strings.Join(names, " "))
		for _, name := range names {
			fmt.Fprintf(&b, "\t%s) words=%q ;;\n", name, strings.Join(flags[name], " "))
		}
		b.WriteString("\tesac; fi\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\ncomplete -o default -F _hqa hqa\n")
	}
	_, err := fmt.Fprint(a.out, b.String())
	return err
}
