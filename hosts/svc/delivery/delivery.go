// Package delivery reads a webhook delivery as its receiver got it, and says whether it is the service's.
package delivery

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http/httputil"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/pgherd/pgherd/core/ascii"
	"github.com/pgherd/pgherd/core/webhook"
)

// MaxSize is the longest delivery that is read, with its header, in bytes. The service sends bodies of about one KiB.
const MaxSize = 1 << 20

// Delivery is what a receiver got.
type Delivery struct {
	Timestamp string // the value of Service-Timestamp
	Signature string // the value of Service-Signature
	Body      []byte // as received
}

// Read reads all of a body or a message; one of more than MaxSize bytes is an error.
func Read(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err == nil && len(text) > MaxSize {
		err = fmt.Errorf("it has more than %d bytes", MaxSize)
	}
	return text, err
}

// Parse reads an HTTP message: a request line, which may be missing, header fields, an empty line and the body. The body is as
// long as the header says; where it says nothing, the rest is the body.
func Parse(message []byte) (Delivery, error) {
	reader := bufio.NewReader(bytes.NewReader(message))
	if first, _, _ := bytes.Cut(message, []byte("\n")); bytes.Contains(first, []byte(" HTTP/")) {
		_, _ = reader.ReadString('\n') // it is there
	}
	header, err := textproto.NewReader(reader).ReadMIMEHeader()
	if err != nil {
		return Delivery{}, errors.New("it does not begin with the header fields of an HTTP message and an empty line")
	}
	var d Delivery
	if d.Timestamp, err = single(header, webhook.HeaderTimestamp); err != nil {
		return Delivery{}, err
	}
	if d.Signature, err = single(header, webhook.HeaderSignature); err != nil {
		return Delivery{}, err
	}
	d.Body, err = body(header, reader)
	return d, err
}

// single is the value of a field that stands in a header once.
func single(header textproto.MIMEHeader, name string) (string, error) {
	values := header.Values(name)
	if len(values) != 1 {
		return "", fmt.Errorf("its header has %d fields %s, not one", len(values), name)
	}
	return values[0], nil
}

func body(header textproto.MIMEHeader, rest io.Reader) ([]byte, error) {
	if ascii.Equal(header.Get("Transfer-Encoding"), "chunked") {
		text, err := io.ReadAll(httputil.NewChunkedReader(rest))
		if err != nil {
			return nil, errors.New("its chunked body is broken")
		}
		return text, nil
	}
	text, err := io.ReadAll(rest)
	length := header.Get("Content-Length")
	if err != nil || length == "" {
		return text, err
	}
	n, err := strconv.ParseUint(length, 10, 31)
	switch {
	case err != nil:
		return nil, errors.New("its Content-Length is no length")
	case uint64(len(text)) < n:
		return nil, fmt.Errorf("its body has %d bytes, and its Content-Length is %s", len(text), length)
	}
	return text[:n], nil
}

// Check says why a delivery cannot be taken for one of the service's, made with this secret; nil where it can. Its signature may
// be as old as the tolerance says, and as far in the future; zero is for any age.
func (d Delivery) Check(secret string, now time.Time, tolerance time.Duration) error {
	signed, err := d.signedAt()
	if err != nil {
		return err
	}
	if !webhook.Verify(secret, d.Timestamp, d.Body, d.Signature) {
		return d.mismatch(secret)
	}
	if age := now.Sub(signed); tolerance > 0 && age.Abs() > tolerance {
		way := "ago"
		if age < 0 {
			way = "in the future"
		}
		return fmt.Errorf("the signature is right, but was made %s %s, and %s is allowed", age.Abs().Round(time.Second), way, tolerance)
	}
	return nil
}

// signedAt checks the form of both header fields.
func (d Delivery) signedAt() (time.Time, error) {
	seconds, err := strconv.ParseUint(d.Timestamp, 10, 40)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s is no Unix time in seconds", webhook.HeaderTimestamp)
	}
	digits, versioned := strings.CutPrefix(d.Signature, "v1=")
	if !versioned || len(digits) != 64 || strings.Trim(digits, "0123456789abcdef") != "" {
		return time.Time{}, fmt.Errorf(`%s is not "v1=" and 64 hexadecimal digits in lower case`, webhook.HeaderSignature)
	}
	return time.Unix(int64(seconds), 0), nil
}

// mismatch names the usual mistake, which is a line end that a shell or an editor has added.
func (d Delivery) mismatch(secret string) error {
	if webhook.Verify(secret, d.Timestamp, bytes.TrimRight(d.Body, "\r\n"), d.Signature) {
		return errors.New("the signature is that of the body without the line end that it has here: " +
			"the body has to be as it was received")
	}
	return errors.New("the signature is not that of this body, timestamp and secret")
}
