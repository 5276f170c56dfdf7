package main

import (
	"context"
	"errors"
	"os/user"
	"strings"

	"github.com/alecthomas/kong"

	"humanqa/cmd/humanqa/service"
	"humanqa/domain"
	"humanqa/domain/command"
	"humanqa/domain/oversight"
)

// auditTrail are the flags of a command that the log keeps on record, as it keeps
// what operators do on the console: by whom and why.
type auditTrail struct {
	By     filled `default:"${user}" help:"The operator's name, for the record."`
	Reason filled `default:"done on the command line" help:"The reason, for the record."`
}

// filled is a text that must not be blank.
type filled string

// UnmarshalText is called by kong.
func (f *filled) UnmarshalText(text []byte) error {
	if *f = filled(strings.TrimSpace(string(text))); *f == "" {
		return errors.New("it must not be blank")
	}
	return nil
}

// currentUser is the default of --by.
func currentUser() kong.Vars {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return kong.Vars{"user": u.Username}
	}
	return kong.Vars{"user": "operator"}
}

// record runs do, and writes the operator's act to the log.
func (t auditTrail) record(
	ctx context.Context, core *service.Core, cause command.Cause, a command.OperatorAct,
	do func(context.Context, command.Cause) (domain.Position, error),
) (domain.Position, error) {
	a.PersonID, a.Reason = oversight.OnCommandLine(string(t.By)), string(t.Reason)
	return core.Commands.Act(ctx, cause, a, do)
}

// recordShown is record, and waits until lists show the effect.
func (t auditTrail) recordShown(
	ctx context.Context, core *service.Core, cause command.Cause, a command.OperatorAct,
	do func(context.Context, command.Cause) (domain.Position, error),
) error {
	at, err := t.record(ctx, core, cause, a, do)
	if err == nil {
		core.WaitVisible(ctx, at)
	}
	return err
}

// recordOnProjection is record for a consumer of the log, which has no account.
func (t auditTrail) recordOnProjection(ctx context.Context, core *service.Core, act oversight.Act, name string, do func() error) error {
	_, err := t.record(ctx, core, service.OperatorCause(""), command.OperatorAct{Act: act, Subject: name},
		func(context.Context, command.Cause) (domain.Position, error) { return domain.Position{}, do() })
	return err
}
