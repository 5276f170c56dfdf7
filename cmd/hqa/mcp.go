package main

import (
	"context"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"humanqa/internal/hqa/api"
	"humanqa/internal/mcptools"
)

// mcpCmd is for coding agents that start their tools themselves.
type mcpCmd struct{}

// Run serves the tools of /mcp until standard input ends.
func (mcpCmd) Run(ctx context.Context, a *app, client *api.Client) error {
	server := mcptools.New(client, a.build.Version)
	if err := server.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(a.in), Writer: unclosed{a.out}}); ctx.Err() == nil {
		return err
	}
	return nil // as asked
}

// unclosed is standard output, which the process closes.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
