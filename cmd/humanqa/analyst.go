package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"

	"humanqa/cmd/humanqa/service"
	"humanqa/projections/analytics"
)

type analystCreateCmd struct {
	Name string `required:"" help:"Lower-case letters, digits and _; the role is analyst_NAME."`
}

var analystName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,40}$`)

// Validate is called by kong.
func (c *analystCreateCmd) Validate() error {
	if !analystName.MatchString(c.Name) {
		return errors.New("--name must be lower-case letters, digits and _, and begin with a letter")
	}
	return nil
}

// Run makes a role of Postgres that reads schema analytics and nothing else. One
// that is there gets a new password.
func (c *analystCreateCmd) Run(ctx context.Context, a *app, core *service.Core) error {
	if err := analytics.Prepare(ctx, core.DB); err != nil {
		return fmt.Errorf("%w: start humanqa serve of this version once", err)
	}
	var random [24]byte
	_, _ = rand.Read(random[:]) // it never fails
	role, password := "analyst_"+c.Name, base64.RawURLEncoding.EncodeToString(random[:])
	if err := service.MakeAnalyst(ctx, core.DB, role, password); err != nil {
		return fmt.Errorf("make the role %s: %w", role, err)
	}
	dsn, err := service.AnalystDSN(a.cfg, role, password)
	if err != nil {
		return err
	}
	return a.print(map[string]any{"role": role, "url": dsn}, "role  %s\nurl   %s   (shown once)\npsql '%s' -c 'SELECT * FROM analytics.jobs LIMIT 5'", role, dsn, dsn)
}
