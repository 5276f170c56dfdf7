package main

import (
	"context"
	"errors"
	"fmt"

	"humanqa/cmd/humanqa/service"
	"humanqa/cmd/humanqa/service/backup"
	"humanqa/cmd/humanqa/service/logging"
)

type backupCmd struct {
	File string `arg:"" type:"path" help:"The file to write; it must not exist."`
}

// Run needs the embedded Postgres and nothing else of the service. This binary need not
// know its schema or its log, so that the new binary can make the backup before an
// upgrade.
func (c *backupCmd) Run(ctx context.Context, a *app) (err error) {
	if err := backup.EmbeddedOnly(a.cfg); err != nil {
		return err
	}
	server, err := service.OpenPostgres(ctx, a.cfg, logging.Quiet(a.log))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close(ctx)) }()
	made, err := backup.Write(ctx, a.cfg, server.Address, c.File)
	if err != nil {
		return err
	}
	for _, piece := range made.Missing {
		a.log.Warnf("the file of evidence %s is lost: the backup is without it", piece)
	}
	where := fmt.Sprintf("%d pieces of evidence", made.Evidence)
	if made.EvidenceAt != "" {
		where = "no evidence: that is in " + made.EvidenceAt
	}
	keyset, warning := "the keyset", "\nAnyone with this file can read every secret in it."
	if !made.Keyset {
		keyset, warning = "no keyset: HUMANQA_MASTER_KEY_COMMAND gives it", ""
	}
	return a.print(made, "%s: %d events, %s, %s, %d bytes%s", made.File, made.Events, keyset, where, made.Bytes, warning)
}
