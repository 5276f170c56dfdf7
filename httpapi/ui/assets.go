package ui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"sync"

	"humanqa/httpapi/wire"
	"humanqa/internal/inter"
)

//go:embed assets/dist
var dist embed.FS

// assetsPath starts the path of every asset; the hash of its bytes follows.
const assetsPath = "/assets/"

var assetTypes = map[string]string{
	".js":  "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
}

// asset is a file as it is sent.
type asset struct {
	url         string
	contentType string
	plain       []byte
	zipped      func() []byte // nil: the format is compressed
}

// assets holds every file in memory, by its URL and by its name. A URL names its
// bytes, so it may be kept for ever.
type assets struct {
	byName map[string]*asset
	byURL  map[string]*asset
}

func loadAssets() (*assets, error) {
	all := &assets{byName: map[string]*asset{}, byURL: map[string]*asset{}}
	font := &asset{contentType: inter.Type, plain: inter.File}
	all.add(inter.Name, font)
	err := fs.WalkDir(dist, "assets/dist", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := path.Base(file)
		contentType, known := assetTypes[path.Ext(name)]
		if !known {
			return nil // licences
		}
		one := &asset{contentType: contentType}
		if one.plain, err = dist.ReadFile(file); err != nil {
			return err
		}
		if path.Ext(name) == ".css" {
			one.plain = bytes.ReplaceAll(one.plain, []byte(inter.Name), []byte(font.url))
		}
		one.zipped = sync.OnceValue(func() []byte { return wire.Gzip(one.plain) })
		all.add(name, one)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load the assets: %w", err)
	}
	return all, nil
}

func (a *assets) add(name string, one *asset) {
	sum := sha256.Sum256(one.plain)
	one.url = assetsPath + hex.EncodeToString(sum[:10]) + "/" + name
	a.byName[name], a.byURL[one.url] = one, one
}

// url is the URL of the asset with that name. A template with an unknown name fails at its
// first test.
func (a *assets) url(name string) (string, error) {
	one, found := a.byName[name]
	if !found {
		return "", fmt.Errorf("there is no asset %q", name)
	}
	return one.url, nil
}

func (a *assets) serve(w http.ResponseWriter, r *http.Request) {
	one, found := a.byURL[r.URL.Path]
	if !found {
		http.NotFound(w, r)
		return
	}
	one.send(w, r, "public, max-age=31536000, immutable")
}

// serveIcon answers browsers that ask for an icon by its usual name, as they do for an
// answer that is no page. The name stays when the icon changes.
func (a *assets) serveIcon(w http.ResponseWriter, r *http.Request) {
	a.byName["mark.svg"].send(w, r, "public, max-age=86400")
}

// serveRobots lets search engines see what needs neither a sign-in nor a secret link.
func serveRobots(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "public, max-age=86400")
	_, _ = io.WriteString(w, "User-agent: *\nAllow: /$\nAllow: /docs\nAllow: /assets/\nDisallow: /\n")
}

func (one *asset) send(w http.ResponseWriter, r *http.Request, cache string) {
	h := w.Header()
	h.Set("Content-Type", one.contentType)
	h.Set("Cache-Control", cache)
	h.Set("Vary", "Accept-Encoding")
	body := one.plain
	if one.zipped != nil && wire.TakesGzip(r.Header.Values("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
		body = one.zipped()
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // the client is gone
}
