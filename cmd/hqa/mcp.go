package main

import (
	"context"

	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/mcptools"
)

// mcpCmd is for coding agents that start their tools themselves.
type mcpCmd struct{}

// Run serves the tools of /mcp until standard input ends.
func (mcpCmd) Run(ctx context.Context, a *app, client *humanqa.Client) error {
	if err := mcptools.Run(ctx, mcptools.New(client, a.build.Version), a.in, a.out); ctx.Err() == nil {
		return err
	}
	return nil // as asked
}
