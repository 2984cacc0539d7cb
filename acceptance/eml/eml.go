// Package eml reads mails as their recipients have them.
package eml

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Mail is a mail of plain text and HTML.
type Mail struct {
	MessageID, To, Subject, Text, HTML string
}

// ReadFolder reads every mail of a folder, the oldest first.
func ReadFolder(dir string) (list []Mail, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.eml"))
	if err != nil {
		return nil, err
	}
	written := map[string]time.Time{}
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		written[name] = info.ModTime()
	}
	slices.SortFunc(names, func(a, b string) int { return written[a].Compare(written[b]) })
	for _, name := range names {
		m, err := readFile(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		list = append(list, m)
	}
	return list, nil
}

// ownerOnly are the permissions of a file that has a token in it.
const ownerOnly fs.FileMode = 0o600

func readFile(name string) (m Mail, err error) {
	file, err := os.Open(name)
	if err != nil {
		return m, err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Mode().Perm() != ownerOnly {
		return m, errors.Join(err, errors.New("others may read it"))
	}
	return Parse(file)
}

// Parse reads a mail of plain text and HTML.
func Parse(from io.Reader) (m Mail, err error) {
	raw, err := mail.ReadMessage(from)
	if err != nil {
		return m, err
	}
	to, err := mail.ParseAddress(raw.Header.Get("To"))
	if err != nil {
		return m, err
	}
	m.MessageID, m.To = raw.Header.Get("Message-Id"), to.Address
	if m.Subject, err = new(mime.WordDecoder).DecodeHeader(raw.Header.Get("Subject")); err != nil {
		return m, err
	}
	kind, parameters, err := mime.ParseMediaType(raw.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		return m, errors.Join(err, fmt.Errorf("its content is %s", kind))
	}
	parts := multipart.NewReader(raw.Body, parameters["boundary"])
	for _, into := range []struct {
		kind string
		text *string
	}{{"text/plain", &m.Text}, {"text/html", &m.HTML}} {
		if *into.text, err = readPart(parts, into.kind); err != nil {
			return m, err
		}
	}
	return m, nil
}

func readPart(parts *multipart.Reader, kind string) (string, error) {
	part, err := parts.NextRawPart()
	if err != nil {
		return "", err
	}
	if got := part.Header.Get("Content-Type"); !strings.HasPrefix(got, kind) {
		return "", fmt.Errorf("a part is %s, not %s", got, kind)
	}
	text, err := io.ReadAll(quotedprintable.NewReader(part))
	return strings.ReplaceAll(string(text), "\r\n", "\n"), err
}
