// Package ui is what all pages for people share: the table of pages, who is
// asking, the layout, the assets, and how an open page stays current. The pages
// themselves are in the packages beside it (signin, dashboard, workbench).
//
// A page is HTML that Go renders, and works without a script. A form is posted,
// and answered by a redirect. A script only adds: when something changed, an open
// page fetches its own URL again and morphs into what came, so what is live and
// what a reload shows cannot differ.
//
// Pages issue commands and read queries directly. A bearer key means nothing
// here, and a cookie nothing under /v1.
package ui

// How a request goes through (site.go): headers, cross-site POSTs out, session,
// role, rate, form, handler. A visitor without a session is led to sign in; who
// may not see a page is told that there is none, so that no id can be tried out.
