package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"humanqa/internal/hqa/api"
)

type loginCmd struct {
	URL     string `arg:"" optional:"" help:"The service, such as https://qa.example.com; without it HQA_URL, or that of the latest login."`
	WithKey bool   `help:"Read an API key from standard input. A key is never an argument: other users could see it."`
}

// keyLimit is far beyond any key.
const keyLimit = 512

// Run keeps a key once the service has accepted it.
func (c *loginCmd) Run(ctx context.Context, a *app) error {
	url, err := a.serviceURL(c.URL)
	if err != nil {
		return err
	}
	if !c.WithKey {
		return usage("give the key on standard input: hqa login --with-key %s < FILE; the dashboard makes one under Keys", url)
	}
	if a.terminal {
		a.say("Paste the API key and press Enter:")
	}
	key, err := bufio.NewReader(io.LimitReader(a.in, keyLimit)).ReadString('\n')
	if key = strings.TrimSpace(key); key == "" {
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		return usage("standard input holds no key")
	}
	return a.keep(ctx, url, key)
}

// serviceURL is the service that is named, or the one in use.
func (a *app) serviceURL(named string) (string, error) {
	url := strings.TrimRight(named, "/")
	if url == "" {
		var err error
		if url, _, err = a.login(); err != nil {
			return "", err
		}
	}
	if url == "" {
		return "", usage("name the service: hqa login https://qa.example.com")
	}
	return url, nil
}

// keep tries the key and stores it.
func (a *app) keep(ctx context.Context, url, key string) error {
	client, err := api.New(url, key, a.build.Version)
	if err != nil {
		return usage("%w", err)
	}
	var credits struct {
		Available int `json:"available"`
	}
	if err := client.Get(ctx, "/v1/credits", &credits); err != nil {
		return err
	}
	if err := a.store.Put(client.Base(), key); err != nil {
		return err
	}
	return a.print(struct {
		URL     string `json:"url"`
		File    string `json:"file"`
		Credits int    `json:"creditsAvailable"`
	}{client.Base(), a.store.Path(), credits.Available},
		"logged in at %s with %d credits; the key is in %s", client.Base(), credits.Available, a.store.Path())
}

type logoutCmd struct {
	URL string `arg:"" optional:"" help:"The service; without it HQA_URL, or that of the latest login."`
}

// Run forgets the key.
func (c *logoutCmd) Run(a *app) error {
	url, err := a.serviceURL(c.URL)
	if err != nil {
		return err
	}
	if err := a.store.Put(url, ""); err != nil {
		return err
	}
	return a.print(map[string]string{"url": url}, "the key of %s is forgotten; revoke it on the dashboard if it must end", url)
}
