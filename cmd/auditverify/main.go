// Command auditverify verifies an exported log, or the proof of one event,
// offline: against checkpoints that were kept elsewhere, by the log's public key. It
// shares no code with the service that wrote them, and needs none: RFC 6962's
// hashes, Ed25519 and the standard library.
//
//	auditverify KEY EXPORT.ndjson [CHECKPOINT…]
//	auditverify KEY PROOF.json [CHECKPOINT…]
//
// KEY is the output of "humanqa audit key"; get it another way than the export.
// The exit code is 0 where everything holds, 1 where not, 2 for a wrong call.
package main

import (
	"fmt"
	"io"
	"os"

	"humanqa/internal/hqa/proof"
)

func run(args []string, out io.Writer) int {
	if len(args) < 2 {
		_, _ = fmt.Fprintln(out, "auditverify KEY EXPORT.ndjson|PROOF.json [CHECKPOINT…]")
		return 2
	}
	bad, _ := proof.Check(args[0], args[1], args[2:], out)
	return min(bad, 1)
}

func main() { os.Exit(run(os.Args[1:], os.Stdout)) }
