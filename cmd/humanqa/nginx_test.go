package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"humanqa/internal/testing/browsertest"
	"humanqa/internal/testing/eventually"
	"humanqa/internal/testing/must"
	"humanqa/internal/testing/nginx"
	"humanqa/internal/testing/process"
	"humanqa/internal/testing/webmtest"
)

// A test of a job behind nginx, with the lines of docs/operations.md and with its defaults:
// whatever nginx lets through works, and whatever it refuses is told and kept.
func TestAJobIsTestedBehindNginx(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/operations.md")
	must.NoError(t, err)
	_, lines, _ := strings.Cut(string(document), "\n```nginx\n")
	lines, _, whole := strings.Cut(lines, "\n```\n")
	if !whole || strings.Count(lines, "http://127.0.0.1:8080") != 1 {
		t.Fatalf("docs/operations.md has no lines for nginx: %q", lines)
	}
	process.Build(t, "hqa")
	for name, lines := range map[string]string{
		"with its defaults":   "location / { proxy_pass http://127.0.0.1:8080; }",
		"with the documented": lines,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newBehind(t, lines).plays(lines)
		})
	}
}

// behind is a service that clients reach through nginx.
type behind struct {
	*program // its address is that of nginx
	t        *testing.T
	service  string // the address of the service itself
	nginx    *process.Process
	account  string
	key      string
	refuses  bool // large bodies
}

func newBehind(t *testing.T, lines string) *behind {
	t.Helper()
	address := process.Address(t)
	b := &behind{t: t, refuses: !strings.Contains(lines, "client_max_body_size")}
	p := newProgram(t, "HUMANQA_BASE_URL="+strings.Replace("http://"+address, "127.0.0.1", "localhost", 1), "HUMANQA_TRUSTED_PROXIES=127.0.0.1/32")
	front := *p
	b.program, b.service, front.addr = &front, p.addr, address
	front.client = &http.Client{Timeout: eventually.Patience} // nginx has headers of its own
	b.opens(lines)
	p.start()
	b.account, b.key = b.newAccount(100)
	return b
}

// opens starts nginx with the lines.
func (b *behind) opens(lines string) {
	b.t.Helper()
	b.nginx = nginx.Start(b.t, b.addr, strings.Replace(lines, "127.0.0.1:8080", b.service, 1))
}

// signedIn is the tab of a person who was invited.
func (b *behind) signedIn(grant ...string) *browsertest.Tab {
	b.t.Helper()
	var link personLink
	b.cli(&link, append([]string{"person", "invite", "--name", "Ann"}, grant...)...)
	tab := browsertest.New(b.t)
	tab.Screen(1280, 900, false)
	tab.Passkeys()
	tab.Open(link.Link)
	if !b.refuses {
		tab.Click("form[data-passkey] button")
		return tab
	}
	// By default nginx passes another host on, at which no passkey works.
	tab.Fill("[name=login]", strings.ToLower(grant[0][2:]))
	tab.Fill("[name=password]", "a long word and another")
	tab.Press(browsertest.Enter)
	return tab
}

func (b *behind) plays(lines string) {
	t := b.t
	owner, checker := b.signedIn("--account", b.account, "--role", "owner"), b.signedIn("--checker")
	owner.WaitText("Acme")
	checker.WaitText("No waiting tests")
	for _, tab := range []*browsertest.Tab{owner, checker} {
		browsertest.Eval[bool](tab, `window.stays = true`)
	}
	created := b.feed("job.created")
	verdict := make(chan error, 1)
	cmd := exec.CommandContext(t.Context(), process.Build(t, "hqa"), "run", "checkout.md", "--wait", "--yes", "--json")
	home := t.TempDir()
	cmd.Env, cmd.Dir = append(os.Environ(), "HQA_URL="+b.url(""), "HQA_API_KEY="+b.key, "HOME="+home, "XDG_CONFIG_HOME="+home), home
	must.NoError(t, os.WriteFile(filepath.Join(home, "checkout.md"), []byte("---\nurl: https://shop.example.com\n---\n# Checkout\n\n- [ ] It is bought\n"), 0o600))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	must.NoError(t, cmd.Start())
	go func() { verdict <- cmd.Wait() }()
	id, _ := created()["jobId"].(string)
	owner.WaitText("Checkout") // by themselves
	checker.WaitText("Checkout")
	for _, tab := range []*browsertest.Tab{owner, checker} {
		if !browsertest.Eval[bool](tab, `window.stays === true`) {
			t.Error("a page was loaded again")
		}
	}
	checker.Click("#job-" + id + " button")
	checker.WaitText("All saved")
	bench := browsertest.Eval[string](checker, "location.href")
	recordings := 1
	b.recording(checker, bench)
	checker.WaitText("The recording is saved")
	checker.WaitText("All saved")
	b.picture(checker)
	if b.refuses {
		recordings++
		owner.Allow("ERR_")   // nginx is away for a moment,
		checker.Allow("ERR_") // and so is every stream
		b.raises(checker, bench)
	}
	checker.Wait(`document.querySelectorAll('.kept:not(.sending) img').length === 1`)
	checker.WaitText("All saved")
	progress := b.agentWaits(id)
	progress("0 of 1 checked")
	checker.Click("#checklist button[value=pass]")
	progress("1 of 1 checked")
	checker.WaitText("All saved")
	checker.PressCtrl(browsertest.Enter)
	checker.Wait(`document.activeElement.id === 'summary'`)
	checker.PressCtrl(browsertest.Enter)
	checker.WaitText("Your report is with the client")
	if err := <-verdict; err != nil || !strings.Contains(said.String(), `"passed"`) {
		t.Errorf("hqa: %v\n%s", err, &said)
	}
	eventually.True(t, "the report has the picture and what was recorded", func() bool {
		var report struct {
			Items      []struct{ ScreenshotURL string }
			Recordings []any
		}
		got := b.call(http.StatusOK, "GET", "/v1/jobs/"+id+"/report", b.key, nil).body
		must.NoError(t, json.Unmarshal(got, &report))
		return report.Items[0].ScreenshotURL != "" && len(report.Recordings) == recordings
	})
	b.hook()
}

// feed follows the account's events by a stream; the function gives the next event of the type.
func (b *behind) feed(event string) (next func() map[string]any) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.url("/v1/events"), nil)
	must.NoError(b.t, err)
	r.Header.Set("Authorization", "Bearer "+b.key)
	r.Header.Set("Accept", "text/event-stream")
	ctx, cancel := context.WithTimeout(b.t.Context(), eventually.Patience)
	b.t.Cleanup(cancel)
	res, err := http.DefaultTransport.RoundTrip(r.WithContext(ctx))
	must.NoError(b.t, err)
	b.t.Cleanup(func() { _ = res.Body.Close() })
	stream := bufio.NewScanner(res.Body)
	return func() map[string]any {
		b.t.Helper()
		for found := false; stream.Scan(); {
			found = found && stream.Text() != "" || stream.Text() == "event: "+event
			if data, is := strings.CutPrefix(stream.Text(), "data: "); is && found {
				var of map[string]any
				must.NoError(b.t, json.Unmarshal([]byte(data), &of))
				return of
			}
		}
		b.t.Fatalf("%s %s: the feed ended without %s: %v", res.Status, res.Header, event, stream.Err())
		return nil
	}
}

// agentWaits has an agent wait for the report; the function wants the next word of progress.
func (b *behind) agentWaits(id string) (hears func(words string)) {
	b.t.Helper()
	notified := make(chan string, 10)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, n *sdk.ProgressNotificationClientRequest) { notified <- n.Params.Message },
	})
	ctx, cancel := context.WithTimeout(b.t.Context(), eventually.Patience)
	b.t.Cleanup(cancel)
	c, err := client.Connect(ctx, &sdk.StreamableClientTransport{
		Endpoint: b.url("/mcp"), HTTPClient: &http.Client{Transport: keyed(b.key)}, DisableStandaloneSSE: true,
	}, nil)
	must.NoError(b.t, err)
	b.t.Cleanup(func() { cancel(); _ = c.Close() })
	wait := &sdk.CallToolParams{Name: "wait_for_report", Arguments: map[string]any{"jobId": id}}
	wait.SetProgressToken("token")
	go func() {
		for ctx.Err() == nil { // a wait ends after 45 seconds
			if _, err := c.CallTool(ctx, wait); err != nil {
				return
			}
		}
	}()
	return func(words string) {
		b.t.Helper()
		for {
			select {
			case got := <-notified:
				if strings.HasPrefix(got, words) {
					return
				}
			case <-ctx.Done():
				b.t.Fatalf("no progress says %s", words)
			}
		}
	}
}

// recording opens the page in a browser that holds a film of two and a half megabytes, which was
// not sent yet.
func (b *behind) recording(tab *browsertest.Tab, bench string) {
	b.t.Helper()
	film := base64.StdEncoding.EncodeToString(webmtest.Film{Seconds: 5, Frame: 100_000}.Bytes())
	browsertest.Eval[bool](tab, fmt.Sprintf(`(async () => {
		const {person, job, token} = document.getElementById('bench').dataset, id = crypto.randomUUID()
		const data = new Blob([Uint8Array.from(atob(%q), (c) => c.charCodeAt(0))])
		const db = await new Promise((done) => { const asked = indexedDB.open('humanqa-reels'); asked.onsuccess = () => done(asked.result) })
		await new Promise((done) => {
			const writes = db.transaction(['reels', 'slices'], 'readwrite')
			writes.oncomplete = () => { db.close(); done() }
			writes.objectStore('slices').put({reel: id, at: 0, data})
			writes.objectStore('reels').put({id, person, job, token, began: Date.now() - 5000, acked: 0})
		})
		return true
	})()`, film))
	tab.Open(bench)
}

// picture has the checker paste a picture of three megabytes.
func (b *behind) picture(tab *browsertest.Tab) {
	b.t.Helper()
	browsertest.Eval[bool](tab, `(async () => {
		const side = 1050, canvas = new OffscreenCanvas(side, side), at = canvas.getContext('2d'), noise = at.createImageData(side, side)
		for (let n = 0; n < noise.data.length; n += 60000) crypto.getRandomValues(noise.data.subarray(n, Math.min(n + 60000, noise.data.length)))
		for (let n = 3; n < noise.data.length; n += 4) noise.data[n] = 255
		at.putImageData(noise, 0, 0)
		const data = new DataTransfer()
		data.items.add(new File([await canvas.convertToBlob({type: 'image/png'})], 'image.png', {type: 'image/png'}))
		document.activeElement.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}))
		return true
	})()`)
	tab.WaitText("Your picture")
	tab.Press(browsertest.Enter)
	if b.refuses {
		tab.Allow("413")
		tab.WaitText(" MB (413). Ask the operator to raise its limit.")
		tab.WaitText("It is kept in this browser.")
		tab.Shot("nginx-refuses-a-picture")
		tab.Axe("a picture that a proxy refused")
	}
}

// raises has the operator lower the limit of nginx, and then raise it: the browser keeps whatever
// was refused until then.
func (b *behind) raises(tab *browsertest.Tab, bench string) {
	b.t.Helper()
	limit := func(size string) {
		b.nginx.Kill()
		b.opens("location / { proxy_pass http://127.0.0.1:8080; client_max_body_size " + size + "; }")
	}
	limit("100k")
	b.recording(tab, bench)
	tab.WaitText("A proxy in front of the service refused 1.0 MB (413).")
	tab.Shot("nginx-refuses-a-recording")
	limit("51m")
	tab.WaitText("The recording is saved")
	tab.Click("[data-send]")
}

// hook has a pipeline tell of a deploy.
func (b *behind) hook() {
	b.t.Helper()
	hook := b.call(http.StatusCreated, "POST", "/v1/projects", b.key, map[string]any{"name": "Shop"}).text("deployHookUrl")
	at, err := url.Parse(hook)
	must.NoError(b.t, err)
	if at.Port() != strings.Split(b.addr, ":")[1] {
		b.t.Errorf("the hook is at %s", hook)
	}
	b.call(http.StatusCreated, "POST", at.Path, "", map[string]any{"url": "https://shop.example.com", "commitSha": "abc"})
}
