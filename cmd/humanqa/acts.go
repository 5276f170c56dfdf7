package main

import (
	"context"
	"errors"
	"os/user"
	"strings"

	"github.com/alecthomas/kong"

	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
)

// record are the flags of what an operator does here: it is written down as it is
// on the console, with who and why.
type record struct {
	By     string `default:"${user}" help:"Who does it, for the record."`
	Reason string `default:"done on the command line" help:"Why, for the record."`
}

// Validate is called by kong.
func (r record) Validate() error {
	if strings.TrimSpace(r.By) == "" || strings.TrimSpace(r.Reason) == "" {
		return errors.New("--by and --reason must not be blank")
	}
	return nil
}

// whoIsHere is the default of --by.
func whoIsHere() kong.Vars {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return kong.Vars{"user": u.Username}
	}
	return kong.Vars{"user": "operator"}
}

// act does it on the record.
func (r record) act(
	ctx context.Context, core *core, cause command.Cause, a command.OperatorAct,
	do func(context.Context, command.Cause) (domain.Position, error),
) (domain.Position, error) {
	a.PersonID, a.Reason = oversight.OnCommandLine(strings.TrimSpace(r.By)), r.Reason
	return core.commands.Act(ctx, cause, a, do)
}

// run is a command that does one thing on the record. It answers when lists show it.
func (r record) run(
	ctx context.Context, a *app, cause command.Cause, act command.OperatorAct,
	do func(context.Context, *command.Service, command.Cause) (domain.Position, error), answer func() error,
) error {
	return a.withCore(ctx, func(ctx context.Context, core *core) error {
		at, err := r.act(ctx, core, cause, act, func(ctx context.Context, cause command.Cause) (domain.Position, error) {
			return do(ctx, core.commands, cause)
		})
		if err != nil {
			return err
		}
		core.waitVisible(ctx, at)
		return answer()
	})
}

// onProjection is act for what follows the log, which has no account.
func (r record) onProjection(ctx context.Context, core *core, act oversight.Act, name string, do func() error) error {
	_, err := r.act(ctx, core, operator(""), command.OperatorAct{Act: act, Subject: name},
		func(context.Context, command.Cause) (domain.Position, error) { return domain.Position{}, do() })
	return err
}
