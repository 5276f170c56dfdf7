package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/fence"
	"humanqa/internal/hqa/listen"
	"humanqa/internal/hqa/trigger"
)

type listenCmd struct {
	listen.Flags
	Project    string `placeholder:"ID" help:"Have this project's webhook come here until this ends. It must have none that leads to another machine."`
	SecretFile string `type:"path" placeholder:"FILE" help:"The signing secret to verify with. With --project the project gets a new one where the file is missing (in the config directory)."`
	Dir        string `type:"path" help:"Where the certificates are kept (that of a demo service in this directory, else the config directory)."`
}

// demoDir is where a service that was started here with --demo keeps the certificates that
// it trusts.
const demoDir = ".humanqa/listen"

// Run prints what arrives until it is interrupted.
func (c *listenCmd) Run(ctx context.Context, a *app) error {
	l := listen.Listener{Flags: c.Flags, Dir: c.Dir, SecretFile: c.SecretFile}
	if l.Dir == "" {
		l.Dir = filepath.Join(a.dir, demoDir)
		if _, err := os.Stat(l.Dir); err != nil {
			l.Dir = filepath.Join(a.store.Dir(), "listen")
		}
	}
	if !filepath.IsAbs(l.Dir) {
		return usage("there is no home directory for the certificates: name one with --dir")
	}
	var hook *projectHook
	if c.Project != "" {
		client, err := a.client()
		if err != nil {
			return err
		}
		if l.SecretFile == "" {
			l.SecretFile = filepath.Join(l.Dir, "secret-"+filepath.Base(c.Project))
		}
		hook = &projectHook{client: client, path: "/v1/projects/" + url.PathEscape(c.Project), secretFile: l.SecretFile}
		if err := hook.check(ctx); err != nil {
			return err
		}
		l.Opened = hook.open
	}
	begun := false
	l.Tell = func(object any, text string) error {
		_, isPlace := object.(listen.Place)
		begun = true
		switch {
		case a.json:
			return a.line(object)
		case isPlace:
			a.say("%s", text)
			return nil
		}
		for line := range strings.SplitSeq(text, "\n") {
			if _, err := fmt.Fprintln(a.out, fence.Plain(line)); err != nil {
				return err
			}
		}
		return nil
	}
	l.Complain = func(line string) { a.say("hqa: %s", oneLine(line)) }
	err := l.Run(ctx)
	if hook != nil && hook.url != "" {
		err = errors.Join(err, hook.clear(ctx))
	}
	if err != nil && !begun { // the address or a directory
		return usage("%w", err)
	}
	return err
}

// projectHook is a project whose webhook comes to this machine for a while.
type projectHook struct {
	client     *humanqa.Client
	path       string
	secretFile string
	url        string // of the listener, once the project was pointed there
}

// clearTime bounds the last calls of a listener that is stopped.
const clearTime = 20 * time.Second

func (h *projectHook) read(ctx context.Context) (webhookURL string, err error) {
	var project humanqa.Project
	err = h.client.Get(ctx, h.path, &project)
	return humanqa.Value(project.WebhookURL), err
}

// check refuses a project with a webhook that goes to another machine.
func (h *projectHook) check(ctx context.Context) error {
	was, err := h.read(ctx)
	if err != nil || was == "" {
		return err
	}
	u, err := url.Parse(was)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return usage("the project's webhook goes to %s: take a project without one", u.Host)
	}
	return nil
}

// open points the webhook to the listener. A webhook that a killed listener left behind is
// enabled again.
func (h *projectHook) open(ctx context.Context, to string) error {
	if err := h.point(ctx, to); err != nil {
		if refused, ok := errors.AsType[*humanqa.Error](err); ok && refused.Status == http.StatusBadRequest {
			return usage("%w; the service must run with --demo, or allow this machine in HUMANQA_WEBHOOK_ALLOW", err)
		}
		return err
	}
	h.url = to
	if _, err := os.Stat(h.secretFile); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// The API shows a secret at its rotation only. No server verifies with the present one:
	// the project had no webhook.
	var made humanqa.RotatedSecret
	call := humanqa.Call{
		Method: http.MethodPost, Path: h.path + "/webhook/rotate-secret", Body: map[string]bool{"immediate": true}, Key: newKey(),
	}
	if _, err := h.client.Do(ctx, call, &made); err != nil {
		return err
	}
	return os.WriteFile(h.secretFile, []byte(humanqa.Value(made.WebhookSecret)+"\n"), 0o600)
}

func (h *projectHook) point(ctx context.Context, to string) error {
	body := map[string]string{"webhookUrl": to}
	_, err := h.client.Do(ctx, humanqa.Call{Method: http.MethodPatch, Path: h.path, Body: body, Safe: true}, nil)
	return err
}

// clear takes the webhook back, unless it was pointed elsewhere meanwhile. Later events
// are not sent.
func (h *projectHook) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTime)
	defer cancel()
	now, err := h.read(ctx)
	if err == nil && now == h.url {
		err = h.point(ctx, "")
	}
	if err != nil {
		return fmt.Errorf("the project's webhook still goes to this machine, clear its webhookUrl: %w", err)
	}
	return nil
}

type triggerCmd struct {
	Event   string `arg:"" help:"The event, such as job.completed; webhook.test needs no sandbox."`
	Project string `required:"" placeholder:"ID" help:"The project. The key must be a sandbox's: robots play the steps that lead to the event."`
}

// Run plays the story that leads to the event.
func (c *triggerCmd) Run(ctx context.Context, a *app, client *humanqa.Client) error {
	told, err := trigger.Play(ctx, client, c.Event, c.Project)
	switch {
	case trigger.IsUse(err):
		return usage("%w", err)
	case err != nil:
		return err
	}
	return a.print(told, "%s: %s", told.Event, told.About())
}
