package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
)

// target is a GET to send over and over, each time with any one of the keys. The sender is a light one, because it runs on the
// same processors.
type target struct {
	address, path string
	keys          []string
}

// rate is how many requests a second so many clients get answered, each over one connection that it keeps.
func (t target) rate(ctx context.Context, clients int, during time.Duration) (float64, error) {
	var answered atomic.Int64
	var group errgroup.Group
	began := time.Now()
	for range clients {
		group.Go(func() error {
			return t.connected(func(ask func() ([]byte, error)) error {
				for time.Since(began) < during && ctx.Err() == nil {
					if _, err := ask(); err != nil {
						return err
					}
					answered.Add(1)
				}
				return ctx.Err()
			})
		})
	}
	err := group.Wait()
	return float64(answered.Load()) / time.Since(began).Seconds(), err
}

// read sends so many requests, one after the other.
func (t target) read(times int) error {
	return t.connected(func(ask func() ([]byte, error)) error {
		for range times {
			if _, err := ask(); err != nil {
				return err
			}
		}
		return nil
	})
}

// sameRecord fails where the two do not answer with the same record.
func sameRecord(a, b target) error {
	var records [2]wire.Database
	for i, t := range []target{a, b} {
		err := t.connected(func(ask func() ([]byte, error)) error {
			body, err := ask()
			if err != nil {
				return err
			}
			return json.Unmarshal(body, &records[i])
		})
		if err != nil {
			return err
		}
		records[i].CreatedAt = records[i].CreatedAt.UTC().Truncate(time.Millisecond)
	}
	if records[0] != records[1] {
		return fmt.Errorf("the bare handler does not look the same up: %+v and %+v", records[0], records[1])
	}
	return nil
}

// connected calls fn with what sends one request and returns its answer, which is good until the next, over one connection.
func (t target) connected(fn func(ask func() ([]byte, error)) error) error {
	conn, err := net.Dial("tcp", t.address)
	if err != nil {
		return err
	}
	requests := t.requests()
	answers := bufio.NewReader(conn)
	var answer fasthttp.Response
	err = fn(func() ([]byte, error) {
		if _, err := conn.Write(requests[rand.IntN(len(requests))]); err != nil {
			return nil, err
		}
		if err := answer.Read(answers); err != nil {
			return nil, err
		}
		if answer.StatusCode() != http.StatusOK {
			return nil, fmt.Errorf("GET %s: %d: %s", t.path, answer.StatusCode(), answer.Body())
		}
		return answer.Body(), nil
	})
	return errors.Join(err, conn.Close())
}

func (t target) requests() (all [][]byte) {
	bare := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n", t.path, t.address)
	for _, key := range t.keys {
		all = append(all, fmt.Appendf(slices.Clone(bare), "Authorization: Bearer %s\r\n\r\n", key))
	}
	if len(all) == 0 {
		return [][]byte{append(bare, "\r\n"...)}
	}
	return all
}
