package browsertest

import (
	"context"
	"os/exec"
	"slices"
	"sync"

	"github.com/chromedp/chromedp"

	"humanqa/internal/testing/scratch"
)

// shell is Chromium without the parts around a page. A walk over pages needs half the
// processor time in it. full is a whole browser: it can notify a person.
var (
	shell = browser{names: []string{"chromium-headless-shell", "chrome-headless-shell"}}
	full  = browser{names: []string{"chromium", "chromium-browser", "google-chrome"}}
)

// browser is a program that all tabs of a package share.
type browser struct {
	names []string

	mu     sync.Mutex
	ctx    context.Context
	ending []context.CancelFunc
	failed error
}

// Main runs a package's tests and ends the browsers after them.
func Main(run func() int) int {
	return scratch.Main(func() int {
		code := run()
		shell.end()
		full.end()
		return code
	})
}

// path is "" where the browser is not installed.
func (b *browser) path() string {
	for _, name := range b.names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// start returns the context of the browser, which the first call starts.
func (b *browser) start() (context.Context, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx != nil || b.failed != nil {
		return b.ctx, b.failed
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(b.path()), chromedp.NoSandbox,
		chromedp.Flag("force-prefers-reduced-motion", true), chromedp.Flag("hide-scrollbars", true),
		// A fake microphone that beeps, a fake screen, and no question for permission to use
		// them.
		chromedp.Flag("use-fake-device-for-media-stream", true), chromedp.Flag("use-fake-ui-for-media-stream", true),
		chromedp.Flag("autoplay-policy", "no-user-gesture-required"))
	allocator, endAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(allocator)
	b.ending = append(b.ending, endAllocator, end)
	if b.failed = chromedp.Do(ctx); b.failed == nil {
		b.ctx = ctx
	}
	return b.ctx, b.failed
}

func (b *browser) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, end := range slices.Backward(b.ending) {
		end()
	}
}
