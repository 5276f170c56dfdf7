package mcptools

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"humanqa/integrations/clients/go/humanqa"
	"humanqa/integrations/skill"
	"humanqa/internal/testing/must"
)

// The skill and the page for agents name the tools that there are, and no others.
func TestTheTextsNameTheToolsThereAre(t *testing.T) {
	t.Parallel()
	near, far := sdk.NewInMemoryTransports()
	ctx := t.Context()
	served, err := New(humanqa.Within("https://qa.example", nil, "test"), "test").Connect(ctx, far, nil)
	must.NoError(t, err)
	client, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(ctx, near, nil)
	must.NoError(t, err)
	listed, err := client.ListTools(ctx, nil)
	must.NoError(t, err)
	var want []string
	for _, tool := range listed.Tools {
		want = append(want, tool.Name)
	}
	slices.Sort(want)
	page, err := os.ReadFile("../../docs/mcp.md")
	must.NoError(t, err)
	for name, text := range map[string]string{"the skill": skill.Text, "docs/mcp.md": string(page)} {
		_, table, found := strings.Cut(text, "| Tool |")
		var named []string
		for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(table, -1) {
			named = append(named, m[1])
		}
		slices.Sort(named)
		if !found || !slices.Equal(named, want) {
			t.Errorf("%s names %q, there are %q", name, named, want)
		}
	}
	must.NoError(t, client.Close())
	must.NoError(t, served.Wait())
}
