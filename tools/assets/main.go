// Command assets bundles what pages are sent: from the folder's src into its
// dist, one file an entry, not minified, so that a diff of it can be read.
// Imports of packages are found in vendor; nothing is fetched.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "assets: name the folder that holds src, vendor and dist")
		os.Exit(2)
	}
	dir, err := filepath.Abs(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "assets:", err)
		os.Exit(1)
	}
	at := func(path ...string) string { return filepath.Join(append([]string{dir}, path...)...) }
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: dir,
		EntryPoints: []string{at("src", "page.ts"), at("src", "bench.ts"), at("src", "bench.css"), at("src", "room.ts"),
			at("src", "room.css"), at("src", "page.css"), at("src", "mark.svg")},
		Outdir:        at("dist"),
		Bundle:        true,
		Write:         true,
		Format:        api.FormatESModule,
		Target:        api.ES2022,
		Charset:       api.CharsetUTF8,
		LegalComments: api.LegalCommentsInline,
		External:      []string{"*.woff2"}, // the service puts in the font's URL
		Loader:        map[string]api.Loader{".svg": api.LoaderCopy},
		Alias:         map[string]string{"idiomorph": at("vendor", "idiomorph", "idiomorph.esm.js")},
		LogLevel:      api.LogLevelWarning,
	})
	if len(result.Errors) > 0 {
		os.Exit(1)
	}
}
