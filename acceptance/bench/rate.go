package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"
)

// target is a GET to send over and over. The sender is a light one, because it runs on the same processors.
type target struct{ address, path, key string }

// rate is how many requests a second so many clients get answered, each over one connection that it keeps.
func (t target) rate(ctx context.Context, clients int, during time.Duration) (float64, error) {
	var answered atomic.Int64
	var group errgroup.Group
	began := time.Now()
	for range clients {
		group.Go(func() error {
			return t.connected(func(ask func() error) error {
				for time.Since(began) < during && ctx.Err() == nil {
					if err := ask(); err != nil {
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
	return t.connected(func(ask func() error) error {
		for range times {
			if err := ask(); err != nil {
				return err
			}
		}
		return nil
	})
}

// connected calls fn with what sends one request and reads its answer, over one connection.
func (t target) connected(fn func(ask func() error) error) error {
	conn, err := net.Dial("tcp", t.address)
	if err != nil {
		return err
	}
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n", t.path, t.address)
	if t.key != "" {
		request = fmt.Appendf(request, "Authorization: Bearer %s\r\n", t.key)
	}
	request = append(request, "\r\n"...)
	answers := bufio.NewReader(conn)
	var answer fasthttp.Response
	err = fn(func() error {
		if _, err := conn.Write(request); err != nil {
			return err
		}
		if err := answer.Read(answers); err != nil {
			return err
		}
		if answer.StatusCode() != http.StatusOK {
			return fmt.Errorf("GET %s: %d: %s", t.path, answer.StatusCode(), answer.Body())
		}
		return nil
	})
	return errors.Join(err, conn.Close())
}
