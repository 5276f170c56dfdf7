package main

import (
	"context"

	"humanqa/cmd/humanqa/service"
	"humanqa/internal/vault"
)

type keysRotateCmd struct {
	Finish bool   `help:"Take the old key out of the keyset, once nothing is wrapped under it. It still verifies MACs."`
	Store  string `placeholder:"PROGRAM" help:"A program that keeps the new keyset, which it gets on its standard input, where HUMANQA_MASTER_KEY_COMMAND gives the keyset."`
}

// nextSteps are the words behind each step of a rotation, with the new key and the number of
// data keys.
var nextSteps = map[vault.Step]string{
	vault.KeyAdded: "The keyset has the new key %[1]s, and nothing is wrapped under it yet.\n" +
		"Give the keyset to every process that has a copy of it, and to your backup. Then run the same command again.",
	vault.KeysRewrapped: "All data keys are wrapped under the key %[1]s, %[2]d of them anew.\n" +
		"Keep a copy of the keyset apart from the database. Then run: humanqa keys rotate --finish",
	vault.OldKeysOut: "Only the key %[1]s opens data keys, older ones verify MACs.\n" +
		"Give the keyset to every process that has a copy of it, and to your backup.",
}

// Run runs as the owner of the data directory: a keyset that root writes would be of no use
// to the service.
func (c *keysRotateCmd) Run(ctx context.Context, a *app) error {
	if err := service.BecomeOwner(a.cfg, a.log); err != nil {
		return err
	}
	return a.withCore(ctx, func(ctx context.Context, core *service.Core) error {
		out, err := core.Vault.Rotate(ctx, vault.Rotation{Finish: c.Finish, Apart: a.cfg.DatabaseURL != "", Store: c.Store})
		if err != nil {
			return err
		}
		return a.print(out, nextSteps[out.Step], out.KeyID, out.Rewrapped)
	})
}
