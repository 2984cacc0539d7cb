package web

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pgherd/pgherd/core/ascii"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

// Answer is what a page answers with.
type Answer interface {
	write(r *Request) error
}

// Redirect sends a browser on. After an action, the next page says what was done.
type Redirect struct{ To string }

// didParameter names the action of which a page says that it was done.
const didParameter = "did"

// write implements Answer.
func (to Redirect) write(r *Request) error {
	where := to.To
	if r.page.Done != "" {
		where = WithQuery(where, didParameter, r.page.Name)
	}
	r.redirect(where)
	return nil
}

// Away sends a browser to another server, and only by TLS. After a form that is a page which leads on by itself: a browser does
// not follow a redirect of a form to where the policy lets no form be sent.
type Away struct{ To, Name string }

// write implements Answer.
func (a Away) write(r *Request) error {
	switch {
	case !secure(a.To):
		r.fail(errors.New("a page leads away to what is no https URL"))
		return nil
	case r.page.Method != http.MethodPost:
		r.redirect(a.To)
		return nil
	}
	r.out.Header().Set("Refresh", "0; url="+a.To)
	on := &Link{Text: "Go on to " + a.Name, Href: a.To}
	return (&View{Title: "One moment", Outside: true, Sections: []*Section{{Main: on}}}).write(r)
}

func secure(to string) bool {
	u, err := url.Parse(to)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil
}

// Data is JSON for the script of a page.
type Data []byte

// write implements Answer.
func (d Data) write(r *Request) error {
	return r.send("application/json", http.StatusOK, d)
}

// Download is a file for the browser to keep. If Body ends before Size, the connection is broken, so that the browser notices.
type Download struct {
	Filename, ContentType string // of the service's own making: no quotes, no control characters
	Size                  int64
	Body                  io.ReadCloser
}

// write implements Answer.
func (d Download) write(r *Request) error {
	defer d.Body.Close()
	h := r.out.Header()
	h.Set("Content-Type", d.ContentType)
	h.Set("Content-Disposition", `attachment; filename="`+d.Filename+`"`)
	h.Set("Content-Length", strconv.FormatInt(d.Size, 10))
	r.out.WriteHeader(http.StatusOK)
	if r.http.Method == http.MethodHead {
		return nil
	}
	to := paced{r.out, http.NewResponseController(r.out)}
	defer to.begin() // of what is left to be sent
	n, err := io.Copy(to, d.Body)
	if err == nil && n != d.Size {
		err = fmt.Errorf("the file ended after %d of %d bytes", n, d.Size)
	}
	return err
}

// paced gives a client time for each piece, and not for the whole.
type paced struct {
	to      io.Writer
	control *http.ResponseController
}

// Write implements io.Writer.
func (p paced) Write(b []byte) (int, error) {
	p.begin()
	defer p.end()
	return p.to.Write(b)
}

func (p paced) begin() { _ = p.control.SetWriteDeadline(time.Now().Add(writeTime)) }

// end takes the deadline away. Over HTTP/2 it would end an answer that has nothing to send at the moment.
func (p paced) end() { _ = p.control.SetWriteDeadline(time.Time{}) }

// View is a page as people see it: what is around it, and its sections.
type View struct {
	Title  string
	Part   string // of what Title names; empty for all of it
	Trail  []Link // what it is a part of
	Marks  []*Mark
	Tabs   []Link
	Lead   string
	Main   *Link // what people come here for, beside reading
	Status int   // 0: 200
	// Sections are what the page shows.
	Sections []*Section
	// Watch are the databases with which the page changes.
	Watch []id.DatabaseID
	// Outside is a page for somebody who is not logged in.
	Outside bool
}

// Link leads to a page. Here says that it is the one that is shown.
type Link struct {
	Text, Href string
	Here       bool
}

// layout is what the templates get.
type layout struct {
	*View
	Product, Style, Script, Icon string
	Person                       string
	Nav                          []Link
	Said                         string // what the last action did
	Wrong                        *fault.Error
	RequestID                    string
	Lasts                        bool   // it is brought up to date while it is open
	Live                         string // by whom it is told what changes; empty: it only asks once a minute
	Now                          time.Time
}

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func newBuffer() *bytes.Buffer {
	b := buffers.Get().(*bytes.Buffer)
	b.Reset()
	return b
}

// write implements Answer.
func (v *View) write(r *Request) error {
	r.claim(v)
	p := parts()
	page := layout{
		View: v, Product: r.server.cfg.Product, Style: "/assets/" + p.style.name, Script: "/assets/" + p.script.name,
		Icon: "/assets/" + p.icon.name, RequestID: r.ID, Now: r.Now,
	}
	if r.server.cfg.Live != nil && r.http.Method == http.MethodGet { // what an action shows cannot be read again
		page.Live = liveURL(v.Watch)
		page.Lasts = page.Live != "" || slices.ContainsFunc(v.Sections, func(s *Section) bool { return s.ID != "" })
	}
	if r.Caller.IsPerson() {
		page.Person = r.Caller.User.Email
		page.Nav = r.server.nav(r)
	}
	if did := r.server.table.byName[r.Query(didParameter)]; did != nil && r.http.Method == http.MethodGet {
		page.Said = did.Done
	}
	if f := r.Failure; f != nil && !f.claimed {
		page.Wrong = f.Err
	}
	text, err := r.rendered(page)
	if err != nil {
		return err
	}
	status := v.Status
	if status == 0 {
		status = http.StatusOK
	}
	return r.send("text/html; charset=utf-8", status, text)
}

// rendered is a page as the client takes it, in a memory of its own that is no larger than it is: a client may take its time.
func (r *Request) rendered(page layout) ([]byte, error) {
	text := newBuffer()
	defer buffers.Put(text)
	if err := parts().templates.ExecuteTemplate(text, "page.html", page); err != nil {
		return nil, err
	}
	if r.takesGzip() {
		return compressed(text.Bytes()), nil
	}
	return bytes.Clone(text.Bytes()), nil
}

// compressed is for pages, too. Secrets and what others can put beside them are not on one page in such a way that somebody could
// learn them from its length: tokens never are in pages, and passwords are shown once.
func compressed(text []byte) []byte {
	packed, z := newBuffer(), packers.Get().(*gzip.Writer)
	defer buffers.Put(packed)
	defer packers.Put(z)
	z.Reset(packed)
	_, _ = z.Write(text) // memory takes everything
	_ = z.Close()
	return bytes.Clone(packed.Bytes())
}

var packers = sync.Pool{New: func() any {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level exists
	return z
}}

// takesGzip reports whether the client takes a compressed text. The header of the answer then says that it is one.
func (r *Request) takesGzip() bool {
	h := r.out.Header()
	h.Set("Vary", "Accept-Encoding")
	for coding := range strings.SplitSeq(strings.Join(r.http.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if ascii.Lower(strings.TrimSpace(name)) != "gzip" {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)
		if err == nil && q == 0 {
			return false
		}
		h.Set("Content-Encoding", "gzip")
		return true
	}
	return false
}

// send sends something that is there as a whole.
func (r *Request) send(kind string, status int, text []byte) error {
	h := r.out.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(text)))
	_ = http.NewResponseController(r.out).SetWriteDeadline(time.Now().Add(writeTime))
	r.out.WriteHeader(status)
	if r.http.Method == http.MethodHead {
		return nil
	}
	_, err := r.out.Write(text)
	return err
}

// failWith shows an error as a page of its own.
func (r *Request) failWith(status int, e *fault.Error) {
	if e.RetryAfter > 0 {
		r.retryAfter(e.RetryAfter)
	}
	title, on := "This did not work", []Link{{Text: "To the databases", Href: "/"}}
	switch {
	case e.Code == fault.AccountSuspended:
		title, on = "Suspended", nil // every page is answered like this
	case status == http.StatusNotFound:
		title = "Nothing is here"
	case status == http.StatusForbidden:
		title = "You may not do this"
	case e.Code == fault.Maintenance:
		title = "Maintenance"
	case status == http.StatusTooManyRequests:
		title = "Slow down"
	}
	v := &View{
		Title: title, Status: status, Outside: !r.Caller.IsPerson(),
		Sections: []*Section{{
			Alert: &Alert{Text: e.Message, Code: string(e.Code)}, Links: on,
		}},
	}
	r.Failure = nil
	if err := v.write(r); err != nil {
		r.broken(err)
	}
}
