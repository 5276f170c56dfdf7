package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"humanqa/cmd/hqa/store"
	"humanqa/integrations/clients/go/humanqa"
	"humanqa/internal/backoff"
)

type loginCmd struct {
	URL     string `arg:"" optional:"" help:"The service, such as https://qa.example.com; without it HQA_URL, or that of the latest login."`
	WithKey bool   `xor:"way" help:"Read an API key from standard input. A key is never an argument: other users could see it."`
	Collect bool   `xor:"way" help:"The second step without a terminal: wait until the code of the first one is confirmed."`
}

// keyLimit is far beyond any key.
const keyLimit = 512

// Run keeps a key once the service has accepted it. Without a key on standard input an
// owner confirms a code on the dashboard. At a terminal the command waits for that.
// Without a terminal it prints the code as JSON, and --collect waits.
func (c *loginCmd) Run(ctx context.Context, a *app) error {
	url, err := a.serviceURL(c.URL)
	if err != nil {
		return err
	}
	if !c.WithKey {
		return c.device(ctx, a, url)
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

// device signs in by a code that an owner confirms.
func (c *loginCmd) device(ctx context.Context, a *app, url string) error {
	client, err := humanqa.New(url, "", "hqa/"+a.build.Version)
	if err != nil {
		return usage("%w", err)
	}
	var begun store.Login
	if c.Collect {
		if begun, err = a.store.Login(client.Base()); err != nil {
			return usage("no sign-in at %s waits here: run hqa login %s first", url, url)
		}
		return a.collect(ctx, client, begun)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "an unnamed machine"
	}
	call := humanqa.Call{Method: http.MethodPost, Path: "/v1/device", Body: map[string]string{"client": clip("hqa on " + host)}, Safe: true}
	if _, err := client.Do(ctx, call, &begun); err != nil {
		return err
	}
	begun.URL = client.Base()
	if a.terminal && !a.json {
		a.say("Open %s\nand confirm the code %s. Waiting …", oneLine(begun.VerificationURL), oneLine(begun.UserCode))
		return a.collect(ctx, client, begun)
	}
	if err := a.store.PutLogin(begun); err != nil {
		return err
	}
	a.json = true // an agent or a script reads it
	return a.line(map[string]any{
		"verificationUrl": begun.VerificationURL, "userCode": begun.UserCode, "expiresInSeconds": begun.ExpiresInSeconds,
		"next": "hqa login --collect " + client.Base(),
	})
}

// clip keeps a name within the service's limit.
func clip(name string) string {
	runes := []rune(name)
	return string(runes[:min(len(runes), 100)])
}

// collect asks for the key until a person has answered.
func (a *app) collect(ctx context.Context, client *humanqa.Client, begun store.Login) error {
	call := humanqa.Call{Method: http.MethodPost, Path: "/v1/device/token", Body: map[string]string{"deviceCode": begun.DeviceCode}}
	pause := time.Duration(max(1, begun.IntervalSeconds)) * time.Second
	for n := 1; ; {
		var got humanqa.CollectedLogin
		_, err := client.Once(ctx, call, &got)
		switch {
		case err == nil && got.APIKey != nil:
			return errors.Join(a.keep(ctx, client.Base(), *got.APIKey), a.store.PutLogin(store.Login{}))
		case err == nil:
			err = backoff.Wait(ctx, pause)
		case humanqa.Passing(err):
			err = backoff.Wait(ctx, max(pause, humanqa.Pause(err, n)))
			n++
		}
		if ctx.Err() != nil {
			return &failure{exitRunning, errors.New("the code is not confirmed yet: run the same command again")}
		}
		if err != nil {
			return err
		}
	}
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
	client, err := humanqa.New(url, key, "hqa/"+a.build.Version)
	if err != nil {
		return usage("%w", err)
	}
	var credits humanqa.Balance
	if err := client.Get(ctx, "/v1/credits", &credits); err != nil {
		return err
	}
	if err := a.store.Put(client.Base(), key); err != nil {
		return err
	}
	return a.print(struct {
		URL     string `json:"url"`
		File    string `json:"file"`
		Credits int64  `json:"creditsAvailable"`
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
