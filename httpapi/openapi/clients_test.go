package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"humanqa/internal/testing/must"
)

var toolsDir = flag.String("clients", "", "the folder of linters and generators of clients, installed; see make contract")

// The linters find nothing, and what the generators make compiles.
func TestTheDocumentInOtherTools(t *testing.T) {
	if *toolsDir == "" {
		t.Skip("make contract runs it")
	}
	const generated = "./generated"
	out := filepath.Join(*toolsDir, generated)
	for _, err := range []error{
		os.RemoveAll(out), os.MkdirAll(filepath.Join(out, "api"), 0o755),
		os.WriteFile(filepath.Join(out, "openapi-3.0.json"), Document(), 0o644),
		os.WriteFile(filepath.Join(out, "openapi-3.1.json"), Document31(), 0o644),
	} {
		must.NoError(t, err)
	}
	for _, version := range []string{"3.0", "3.1"} {
		document := filepath.Join(generated, "openapi-"+version+".json")
		t.Run("redocly finds nothing in "+version, func(t *testing.T) {
			t.Parallel()
			var found struct {
				Totals struct{ Errors, Warnings *int }
			}
			raw := tool(t, "node_modules/.bin/redocly", "lint", "--format", "json", document)
			if err := json.Unmarshal(raw, &found); err != nil || found.Totals.Errors == nil || found.Totals.Warnings == nil {
				t.Fatalf("%v in %s", err, raw)
			}
			if *found.Totals.Errors != 0 || *found.Totals.Warnings != 0 {
				t.Errorf("%s", raw)
			}
		})
		t.Run("spectral finds nothing in "+version, func(t *testing.T) {
			t.Parallel()
			tool(t, "node_modules/.bin/spectral", "lint", "--fail-severity", "hint", document)
		})
	}
	t.Run("TypeScript compiles strictly", func(t *testing.T) {
		t.Parallel()
		tool(t, "node_modules/.bin/openapi-typescript", generated+"/openapi-3.0.json", "-o", generated+"/types.ts")
		tool(t, "node_modules/.bin/openapi-ts", "-i", generated+"/openapi-3.1.json", "-o", generated+"/client", "--client", "@hey-api/client-fetch")
		tool(t, "node_modules/.bin/orval", "--input", generated+"/openapi-3.0.json", "--output", generated+"/orval.ts", "--client", "fetch")
		tool(t, "node_modules/.bin/tsc", "-p", ".")
	})
	t.Run("Go compiles", func(t *testing.T) {
		t.Parallel()
		tool(t, "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "api", "-o", generated+"/api/api.go", generated+"/openapi-3.0.json")
		tool(t, "go", "tool", "ogen", "-config", "ogen.yaml", "-target", generated+"/ogen", "-package", "ogen", generated+"/openapi-3.0.json")
		tool(t, "go", "build", "-o", generated+"/play/", "./play/oapi-codegen", "./play/ogen")
	})
	t.Run("the types of the client in Go are current", func(t *testing.T) {
		t.Parallel()
		tool(t, "go", "tool", "oapi-codegen", "-config", "types.yaml", "-o", generated+"/types.gen.go", generated+"/openapi-3.0.json")
		made, err := os.ReadFile(filepath.Join(out, "types.gen.go"))
		must.NoError(t, err)
		committed, err := os.ReadFile("../../integrations/clients/go/humanqa/types.gen.go")
		must.NoError(t, err)
		if !bytes.Equal(made, committed) {
			t.Error("the types are of another document: run make openapi")
		}
	})
}

// tool runs a program beside the tools and gives what it printed; the test fails
// when the program does.
func tool(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), name, args...)
	cmd.Dir = *toolsDir
	cmd.Env = append(os.Environ(), "CI=true", "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "NO_UPDATE_NOTIFIER=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	printed, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", cmd, err, printed, stderr.Bytes())
	}
	return printed
}
