package ui

import (
	"net/http"
	"time"
)

const cookieName = "__Host-humanqa"

// SessionCookie carries a session's token. It is sent to this host only, over
// secure connections only (browsers take the loopback for one), never to a
// script, and never with another site's request that changes anything.
func SessionCookie(token string) *http.Cookie {
	return &http.Cookie{
		Name: cookieName, Value: token, Path: "/", Secure: true, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, MaxAge: int((30 * 24 * time.Hour).Seconds()),
	}
}

// NoSession takes the cookie back.
func NoSession() *http.Cookie {
	c := SessionCookie("")
	c.MaxAge = -1
	return c
}
