// Command write puts the YAML files of httpapi/openapi together and writes the
// documents that the service embeds: make openapi.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"

	"humanqa/httpapi/openapi/assemble"
)

func main() {
	if err := run("httpapi/openapi", "webhooks/testdata"); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func run(dir, payloads string) error {
	v30, v31, err := assemble.Documents(os.DirFS(dir), os.DirFS(payloads))
	if err != nil {
		return err
	}
	for name, document := range map[string][]byte{"openapi.json.gz": v30, "openapi-3.1.json.gz": v31} {
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := w.Write(document); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "dist", name), out.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
