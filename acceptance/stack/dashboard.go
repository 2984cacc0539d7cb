package stack

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"strings"
)

// StartDashboard starts one more dashboard host, which speaks TLS; extra are more flags.
func (s *Stack) StartDashboard(ctx context.Context, extra ...string) (*Host, error) {
	return s.StartDashboardOn(ctx, Place{}, extra...)
}

// StartDashboardOn starts it in a place.
func (s *Stack) StartDashboardOn(ctx context.Context, on Place, extra ...string) (*Host, error) {
	address, err := freeAddress(on)
	if err != nil {
		return nil, err
	}
	certificate, err := s.ca.Issue("dashboard"+on.Address, on.names()...)
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	url := "https://" + net.JoinHostPort(cmp.Or(on.Name, on.host()), port)
	args := []string{
		"--listen", address, "--tls-cert-file", certificate.CertFile, "--tls-key-file", certificate.KeyFile, "--dashboard-url", url,
		"--rate-limits", "read=1000000/1m,write=1000000/1m,log_in=1000000/1m",
	}
	h, err := s.startHost(ctx, on, "", "dashboard", append(args, extra...)...)
	if h != nil {
		h.URL = url
	}
	return h, err
}

// Browser is a new browser without anything: it trusts the stack's authority, and speaks HTTP/2.
func (s *Stack) Browser() (*http.Client, error) {
	text, err := os.ReadFile(s.CAFile())
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New("the CA file holds no certificate")
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	return &http.Client{Jar: jar, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true,
	}}, nil
}

// LogIn logs the owner of an account in at a dashboard host, by a link as an operator makes it.
func (s *Stack) LogIn(ctx context.Context, h *Host, browser *http.Client, of Account) error {
	made, err := s.Admin(ctx, "user", "link", "--email", of.Email, "--dashboard-url", h.URL)
	if err != nil {
		return err
	}
	link := fmt.Sprint(made["link"])
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL+"/link/"+link[strings.LastIndexAny(link, "/=")+1:], nil)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	response, err := browser.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	if response.StatusCode != http.StatusOK || response.Request.URL.Path != "/" {
		err = errors.Join(err, fmt.Errorf("a log-in leads to %s: %s", response.Request.URL.Path, response.Status))
	}
	return errors.Join(err, response.Body.Close())
}
