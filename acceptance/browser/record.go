package browser

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
)

// record is what a page did, as the browser told it.
type record struct {
	frame   string // the page's own, as opposed to those within it
	dismiss func() // a dialog

	mu sync.Mutex
	// The document that is shown: where it is, what the server answered, and the loads that belong to it.
	at     string
	status int
	loader cdp.LoaderID
	loads  map[network.RequestID]*load

	loading   bool
	requested time.Time // when a document asked to leave for another, which has not begun yet
	changed   time.Time // when the last of all this was heard
	faults    []string
	expected  []announced
}

// load is a request, and what came of it.
type load struct {
	url       string
	kind      network.ResourceType
	loader    cdp.LoaderID
	done      bool
	raw, sent int64 // bytes, decoded and as they were sent
}

// announced is a load that a test expects to go wrong.
type announced struct {
	status int
	path   string
}

// lull is how long nothing must have been heard of a page for it to be at rest. A click that sends a form, say, is heard of
// before it returns.
const lull = 30 * time.Millisecond

// hesitation is how long a document may take to leave after it asked to. One that stays after all is never told.
const hesitation = time.Second

func newRecord() *record { return &record{loads: map[network.RequestID]*load{}} }

// of says whose record this is, and how a dialog is dismissed.
func (r *record) of(frame string, dismiss func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frame, r.dismiss = frame, dismiss
}

func (r *record) announce(status int, path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expected = append(r.expected, announced{status, path})
}

// acts is called before something is done to the page.
func (r *record) acts() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = time.Now()
}

// rests reports whether nothing loads and nothing is about to.
func (r *record) rests() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.changed) > lull && !r.loading && time.Since(r.requested) > hesitation && len(r.open()) == 0
}

// restless says why a page is not at rest.
func (r *record) restless() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("the page does not come to rest: loading %v, waiting for %q", r.loading, r.open())
}

// open lists the loads of the document that have not ended. A stream is not meant to.
func (r *record) open() (urls []string) {
	for _, l := range r.loads {
		if !l.done && l.loader == r.loader && l.kind != network.ResourceTypeEventSource {
			urls = append(urls, l.url)
		}
	}
	return urls
}

func (r *record) address() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.at
}

func (r *record) answered() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// size is the bytes of the document, its styles and its scripts, decoded and as they were sent: 0 for what was kept.
func (r *record) size() (raw, sent int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.loads {
		switch l.kind {
		case network.ResourceTypeDocument, network.ResourceTypeStylesheet, network.ResourceTypeScript:
			if l.loader == r.loader {
				raw, sent = raw+l.raw, sent+l.sent
			}
		default:
		}
	}
	return raw, sent
}

// takeFaults returns what went wrong since it was last asked, and what was announced and did not.
func (r *record) takeFaults() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	faults := r.faults
	for _, e := range r.expected {
		faults = append(faults, fmt.Sprintf("%s was to be answered with %d, and was not", e.path, e.status))
	}
	r.faults, r.expected = nil, nil
	return faults
}

func (r *record) fault(format string, args ...any) {
	path := r.at
	if u, err := url.Parse(r.at); err == nil {
		path = u.RequestURI()
	}
	r.faults = append(r.faults, path+": "+fmt.Sprintf(format, args...))
}

// wrong notes a load that went wrong, if it was not announced.
func (r *record) wrong(status int, address, format string, args ...any) {
	u, err := url.Parse(address)
	i := slices.IndexFunc(r.expected, func(e announced) bool {
		return e.status == status && err == nil && (e.path == u.Path || e.path == u.RequestURI())
	})
	if i < 0 {
		r.fault(format, args...)
		return
	}
	r.expected = slices.Delete(r.expected, i, i+1)
}

// note is told everything that happens to the page, in order. It must not call the browser.
func (r *record) note(event any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.noteNavigation(event) || r.noteLoad(event) {
		r.changed = time.Now()
	}
	r.noteFault(event)
}

func (r *record) noteNavigation(event any) bool {
	switch e := event.(type) {
	case *page.EventFrameRequestedNavigation:
		if e.Disposition == page.ClientNavigationDispositionCurrentTab {
			r.requested = time.Now()
		}
	case *page.EventFrameStartedLoading:
		r.loading, r.requested = true, time.Time{}
	case *page.EventFrameStoppedLoading:
		r.loading = false
	case *page.EventNavigatedWithinDocument:
		r.at, r.requested = e.URL, time.Time{}
	case *page.EventFrameNavigated:
		if e.Frame.ParentID == "" {
			r.at, r.loader = e.Frame.URL+e.Frame.URLFragment, e.Frame.LoaderID
			maps.DeleteFunc(r.loads, func(_ network.RequestID, l *load) bool { return l.loader != r.loader })
		}
	default:
		return false
	}
	return true
}

func (r *record) noteLoad(event any) bool {
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		r.loads[e.RequestID] = &load{url: e.Request.URL, kind: e.Type, loader: e.LoaderID}
	case *network.EventResponseReceived:
		r.noteResponse(e)
	case *network.EventDataReceived:
		l := r.loads[e.RequestID]
		if l == nil || l.kind == network.ResourceTypeEventSource {
			return false
		}
		l.raw += e.DataLength
	case *network.EventLoadingFinished:
		if l := r.loads[e.RequestID]; l != nil {
			l.done, l.sent = true, int64(e.EncodedDataLength)
		}
	case *network.EventLoadingFailed:
		r.noteFailure(e)
	default:
		return false
	}
	return true
}

func (r *record) noteResponse(e *network.EventResponseReceived) {
	got := e.Response
	if l := r.loads[e.RequestID]; l != nil && got.MimeType == "text/event-stream" {
		l.kind = network.ResourceTypeEventSource
	}
	if e.Type == network.ResourceTypeDocument && string(e.FrameID) == r.frame {
		r.status = int(got.Status)
	}
	if got.Status >= 400 {
		r.wrong(int(got.Status), got.URL, "%s was answered with %d", got.URL, got.Status)
	}
	if strings.HasPrefix(got.URL, "http") && got.Protocol != "h2" {
		r.fault("%s came over %s", got.URL, got.Protocol)
	}
}

// noteFailure takes no notice of what a person broke off, by going to another page.
func (r *record) noteFailure(e *network.EventLoadingFailed) {
	l := r.loads[e.RequestID]
	if l == nil {
		return
	}
	l.done = true
	if !e.Canceled || e.BlockedReason != "" {
		r.wrong(0, l.url, "%s did not load: %s", l.url, strings.TrimSpace(e.ErrorText+" "+string(e.BlockedReason)))
	}
}

func (r *record) noteFault(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		switch e.Type {
		case runtime.ConsoleAPICalledTypeError, runtime.ConsoleAPICalledTypeWarning, runtime.ConsoleAPICalledTypeAssert:
			r.fault("console: %s: %s", e.Type, said(e.Args))
		default:
		}
	case *runtime.EventExceptionThrown:
		r.fault("exception: %s", thrown(e.ExceptionDetails))
	case *log.EventEntryAdded:
		grave := e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning
		known := e.Entry.Source == log.EntrySourceNetwork && e.Entry.NetworkRequestID != "" // as a load that went wrong
		if grave && !known {
			r.fault("log: %s %s: %s", e.Entry.Source, e.Entry.Level, e.Entry.Text)
		}
	case *audits.EventIssueAdded:
		switch e.Issue.Code {
		case audits.InspectorIssueCodeContentSecurityPolicyIssue: // stands in the log, too
		case audits.InspectorIssueCodeBounceTrackingIssue: // A log-in elsewhere leads through other sites.
		default:
			r.fault("issue: %s", told(e.Issue))
		}
	case *page.EventJavascriptDialogOpening:
		r.fault("dialog: %s: %s", e.Type, e.Message)
		go r.dismiss()
	case *inspector.EventTargetCrashed:
		r.fault("the page crashed")
	}
}

// said is what was handed to the console.
func said(args []*runtime.RemoteObject) string {
	var words []string
	for _, a := range args {
		words = append(words, cmp.Or(a.Description, strings.Trim(string(a.Value), `"`)))
	}
	return strings.Join(words, " ")
}

func thrown(e *runtime.ExceptionDetails) string {
	if e.Exception != nil && e.Exception.Description != "" {
		return e.Exception.Description
	}
	return e.Text
}

func told(issue *audits.InspectorIssue) string {
	details, err := json.Marshal(issue.Details)
	if err != nil {
		return string(issue.Code)
	}
	return string(issue.Code) + " " + string(details)
}
