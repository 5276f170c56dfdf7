package main

import (
	"context"
	"fmt"
	"strings"

	"humanqa/cmd/humanqa/service"
)

type serveCmd struct {
	Demo  bool   `help:"Seed a demo account on the first start, and let webhooks reach this machine."`
	Roles string `help:"Parts to run, any of api,projector,webhooks,policy. Overrides HUMANQA_ROLES."`
}

// Validate is called by kong.
func (c *serveCmd) Validate() error {
	if c.Roles == "" {
		return nil
	}
	_, err := service.ParseRoles(c.Roles)
	return err
}

func (c *serveCmd) Run(ctx context.Context, a *app) error {
	cfg := a.cfg
	cfg.Demo = c.Demo
	if c.Roles != "" {
		roles, err := service.ParseRoles(c.Roles)
		if err != nil {
			return err
		}
		cfg.Roles = roles
	}
	if err := service.BecomeOwner(cfg, a.log); err != nil {
		return err
	}
	return service.Serve(ctx, cfg, a.log, func(s *service.Service) { s.Welcome(a.out) })
}

// Help is shown by humanqa serve --help. Indented lines are not wrapped, so that the
// table stays a table even where a line is wider than the terminal.
func (c *serveCmd) Help() string {
	var text strings.Builder
	text.WriteString("The environment settles the rest:\n")
	for _, s := range service.Settings() {
		fmt.Fprintf(&text, "\n\t%-34s  %s", s.Name, s.About)
		if s.Value != "" {
			fmt.Fprintf(&text, " (%s)", s.Value)
		}
	}
	return text.String()
}
