package main

import (
	"context"
	"fmt"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/logging"
	"humanqa/internal/hqa/listen"
)

// listenCmd is hqa listen on the service's own machine, with the certificates that a
// service with --demo trusts.
type listenCmd struct {
	listen.Flags
	SecretFile string `type:"path" help:"File with the signing secret to verify with; it may be written later."`
	Dir        string `type:"path" help:"Where the certificates are kept (listen in the data directory)."`
}

// Run prints what arrives until it is interrupted.
func (c *listenCmd) Run(ctx context.Context, a *app) error {
	l := listen.Listener{Flags: c.Flags, Dir: c.Dir, SecretFile: c.SecretFile}
	if l.Dir == "" {
		if !service.HasData(a.cfg) {
			return fmt.Errorf("%w; or name a directory for the certificates with --dir", service.NoData(a.cfg))
		}
		l.Dir = service.ReceiverDir(a.cfg)
	}
	l.Tell = func(object any, text string) error { return a.print(object, "%s", text) }
	l.Complain = func(line string) { a.log.Warn(logging.OneLine(line)) }
	return l.Run(ctx)
}
