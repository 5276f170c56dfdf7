package ui

import (
	"net/http"
	"time"

	"humanqa/internal/credential"
)

const (
	sessionCookie = "__Host-humanqa"
	deviceCookie  = "__Host-humanqa-device"
)

// kept is a cookie that is sent to this host only, and over secure connections only
// (browsers count the loopback as one). No script can read it, and no request of another
// site that changes anything carries it.
func kept(name, value string, works time.Duration) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, Path: "/", Secure: true, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, MaxAge: int(works.Seconds()),
	}
}

// SessionCookie carries a session's token.
func SessionCookie(token string) *http.Cookie {
	return kept(sessionCookie, token, credential.SessionFor)
}

// DeviceCookie carries the token of a browser in which a person signed in. It outlasts
// their session, and opens nothing by itself.
func DeviceCookie(token string) *http.Cookie { return kept(deviceCookie, token, credential.DeviceFor) }

// NoSession takes the session's cookie back.
func NoSession() *http.Cookie {
	c := SessionCookie("")
	c.MaxAge = -1
	return c
}

// SessionToken is the session's token that the browser sent, valid or not; empty: none.
func (r *Request) SessionToken() string { return r.cookie(sessionCookie) }

// DeviceToken is the token of an earlier sign-in that the browser sent, valid or not;
// empty: none.
func (r *Request) DeviceToken() string { return r.cookie(deviceCookie) }

func (r *Request) cookie(name string) string {
	if cookies := r.CookiesNamed(name); len(cookies) > 0 {
		return cookies[0].Value
	}
	return ""
}
