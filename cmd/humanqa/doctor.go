package main

import (
	"context"
	"fmt"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/doctor"
	"humanqa/cmd/humanqa/service/logging"
)

type doctorCmd struct {
	Roles string `help:"The roles that humanqa serve gets by its flag. Overrides HUMANQA_ROLES."`
}

// Run looks with the rights of the service: root becomes the owner of the data directory.
func (c *doctorCmd) Run(ctx context.Context, a *app) error {
	cfg, flags := a.cfg, map[string]string{}
	if c.Roles != "" {
		roles, err := service.ParseRoles(c.Roles)
		if err != nil {
			return err
		}
		cfg.Roles, flags["HUMANQA_ROLES"] = roles, c.Roles
	}
	log := logging.Quiet(a.log)
	if err := service.BecomeOwner(cfg, log); err != nil {
		return err
	}
	settled := cfg.Settled(a.envFile, a.fromFile, flags)
	found := doctor.Examine(ctx, cfg, log)
	var lines []string
	for _, s := range settled {
		if s.Value != "" {
			lines = append(lines, fmt.Sprintf("%-34s  %s   (%s)", s.Name, s.Value, s.From))
		}
	}
	lines = append(lines, "")
	wrong := 0
	for _, f := range found {
		lines = append(lines, f.Line())
		if f.State == doctor.Wrong {
			wrong++
		}
	}
	var err error
	if wrong > 0 {
		err = fmt.Errorf("%d of %d parts are wrong: the lines above name the next steps", wrong, len(found))
	}
	return a.conclude(map[string]any{"settings": settled, "findings": found}, lines, err)
}
