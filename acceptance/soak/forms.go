//go:build linux

package soak

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/pgherd/pgherd/acceptance/soak/plan"
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/extension"
)

// form is what somebody sends from a page of the dashboard.
type form struct {
	to     string
	fields []string // a name, its value, and so on
}

// forms are how the owner of an account does in a browser what else is done by the API.
var forms = map[plan.Do]func(*doing) form{
	"stop":    lifecycleForm(database.Stop),
	"start":   lifecycleForm(database.Start),
	"restart": lifecycleForm(database.Restart),
	"label":   func(d *doing) form { return d.form("/environment", "environment", string(d.label())) },
	"choose daily backups": func(d *doing) form {
		return d.form("/backups-schedule", "scheduledBackup", string(d.schedule()))
	},
	"choose query timeouts": func(d *doing) form {
		return d.form("/timeouts", "profile", string(d.profile()), onceField, d.name)
	},
	"install an extension": func(d *doing) form {
		return d.form("/extensions", "extension", string(d.extension()), "kind", string(extension.Install), onceField, d.name)
	},
	"delete":             func(d *doing) form { return d.form("/delete", confirmField, d.in.name) },
	"recover":            func(d *doing) form { return d.form("/recover") },
	"allow a network":    func(d *doing) form { return d.form("/network", "cidr", d.cidr()) },
	"disallow a network": func(d *doing) form { return d.form("/network/" + d.on.known() + "/remove") },
	"back up":            func(d *doing) form { return d.form("/backups") },
	"delete a backup": func(d *doing) form {
		return d.form("/backups/"+d.on.known()+"/delete", confirmField, d.on.known())
	},
	"rename a role":    func(d *doing) form { return d.form("/roles/"+d.on.known()+"/rename", "displayName", d.name) },
	"rotate a role":    func(d *doing) form { return d.form("/roles/"+d.on.known()+"/rotate", onceField, d.name) },
	"revoke a role":    func(d *doing) form { return d.form("/roles/"+d.on.known()+"/revoke", onceField, d.name) },
	"opt in for roles": func(d *doing) form { return d.form("/roles-opt-in") },
	"add a member": func(d *doing) form {
		return d.form("/members", "email", d.neighbour(), "role", string(account.Developer))
	},
	"change a member": func(d *doing) form {
		return d.form("/members/"+d.on.known()+"/role", "role", string(account.Viewer))
	},
	"remove a member": func(d *doing) form { return d.form("/members/" + d.on.known() + "/remove") },
	"invite": func(d *doing) form {
		return d.form("/members", "email", d.stranger(d.step), "role", string(account.Viewer))
	},
	"invite again":           func(d *doing) form { return d.form("/members/invitations/" + d.on.known() + "/resend") },
	"withdraw an invitation": func(d *doing) form { return d.form("/members/invitations/" + d.on.known() + "/revoke") },
	"try a webhook":          func(d *doing) form { return form{to: "/webhooks/" + d.on.known() + "/test"} },
	"disable a webhook":      func(d *doing) form { return form{to: "/webhooks/" + d.on.known() + "/disable"} },
	"cancel what is open":    func(d *doing) form { return form{to: "/operations/" + d.lastOperation() + "/cancel"} },
}

// The fields that several forms have: what names the thing that cannot be had back, and the key that makes a form do the same
// however often it is sent.
const (
	confirmField = "confirm"
	onceField    = "once"
)

// form is one of the pages of the database that the action is about.
func (d *doing) form(below string, fields ...string) form {
	return form{"/databases/" + d.in.known() + below, fields}
}

func lifecycleForm(action database.Event) func(*doing) form {
	return func(d *doing) form { return d.form("/lifecycle", "action", string(action)) }
}

// submits sends a form in the session of the account's owner. Who is answered by the page of an operation knows its ID.
func submits(of func(*doing) form) func(context.Context, *doing) (answer, error) {
	return func(ctx context.Context, d *doing) (answer, error) {
		f, values := of(d), url.Values{}
		for n := 0; n < len(f.fields); n += 2 {
			values.Set(f.fields[n], f.fields[n+1])
		}
		to := d.dashboards[d.Host].URL + f.to
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(values.Encode()))
		if err != nil {
			return nil, err
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Sec-Fetch-Site", "same-origin")
		response, err := d.visit(request)
		if err != nil {
			return nil, err
		}
		to = response.Header.Get("Location")
		if response.StatusCode != http.StatusSeeOther || strings.HasPrefix(to, "/login") || strings.HasPrefix(to, "/prove") {
			return nil, &formError{f.to, response.StatusCode, to}
		}
		if operation, is := strings.CutPrefix(to, "/operations/"); is {
			operation, _, _ = strings.Cut(operation, "?")
			return answer{"operation": map[string]any{"id": operation}}, nil
		}
		return answer{"status": pending}, nil // it is done, or about to be
	}
}

// formError is how a form was answered that did nothing.
type formError struct {
	sent   string
	status int
	to     string
}

func (e *formError) Error() string {
	return fmt.Sprintf("%s is answered by %d, to %q", e.sent, e.status, e.to)
}

// refused reports whether nothing was done. What has failed may have been done.
func (e *formError) refused() bool { return e.status < http.StatusInternalServerError }

// visit sends a request in the session, and reads the answer, which shows no secret that was told elsewhere.
func (d *doing) visit(request *http.Request) (*http.Response, error) {
	d.by.browsing.Lock()
	browser := *d.by.browsers[d.Host]
	d.by.browsing.Unlock()
	if request.Method == http.MethodPost {
		browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	response, err := browser.Do(request)
	if err != nil {
		return nil, err
	}
	page, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // it was read to its end, or broke off
	for _, secret := range d.secrets.In(page) {
		d.broke("secrets on pages", "step %d: %s holds %s", d.step, request.URL.Path, secret)
	}
	return response, err
}

// browse reads pages.
func (d *doing) browse(ctx context.Context, paths ...string) error {
	for _, path := range paths {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.dashboards[d.Host].URL+path, nil)
		if err != nil {
			return err
		}
		response, err := d.visit(request)
		if err != nil {
			return err
		}
		if response.StatusCode >= http.StatusInternalServerError {
			return fmt.Errorf("%s: %s", path, response.Status)
		}
	}
	return nil
}
