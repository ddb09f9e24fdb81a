package rpc

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/leani-go/leani/chain"
)

// logStore yields the same made-up logs to every query, so that what is measured is this
// package and the encoder.
type logStore struct {
	*fakeStore
	logs int
	cost uint64
}

func (s *logStore) View() (View, error) {
	return &logView{fakeView: fakeView{s: s.fakeStore}, store: s}, nil
}

type logView struct {
	fakeView
	store *logStore
}

func (v *logView) Close() {}

func (v *logView) LogsCost(context.Context, chain.Range, *chain.LogFilter) (uint64, error) {
	return v.store.cost, nil
}

func (v *logView) Logs(_ context.Context, _ chain.Range, _ *chain.LogFilter, yield func(*chain.FoundLog) error) error {
	ref := v.s.blocks[1].BlockRef
	hash := v.s.blocks[1].TransactionHashes[0]
	found := chain.FoundLog{
		Log:   chain.Log{Address: &tokenAddress, Topics: [4]*common.Hash{&transferSig, &holderTopic, &holderTopic}, NumTopics: 3, Data: make([]byte, 32)},
		Block: &ref, TransactionHash: &hash,
	}
	for i := range v.store.logs {
		// A new transaction every two logs, a new block every four hundred.
		found.LogIndex = uint32(i)
		found.TransactionIndex = uint32(i / 2)
		hash[0], hash[1] = byte(i/2), byte(i/512)
		ref.Number = uint64(i / 400)
		ref.Hash[0] = byte(i / 400)
		if err := yield(&found); err != nil {
			return err
		}
	}
	return nil
}

const (
	benchChainID = `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`
	benchLogs    = `{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x0","toBlock":"0x7","address":"0x00000000000000000000000000000000000000aa"}]}`
)

// BenchmarkExchange is what a request costs without a transport: reading, the method, encoding.
func BenchmarkExchange(b *testing.B) {
	for _, c := range []struct {
		name, body string
		logs       int
	}{
		{"chainId", benchChainID, 0},
		{"batch100", "[" + string(bytes.TrimSuffix(bytes.Repeat([]byte(benchChainID+","), 100), []byte(","))) + "]", 0},
		{"logs0", benchLogs, 0},
		{"logs10000", benchLogs, 10_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			o := Options{Store: &logStore{fakeStore: newFakeStore(b, 8), logs: c.logs}, Network: testNetwork()}.withDefaults()
			s := newService(o)
			defer s.close()
			x := new(exchange)
			b.ReportAllocs()
			var size int
			for b.Loop() {
				x.open(s, context.Background())
				x.body = append(x.body, c.body...)
				x.run()
				size = len(x.out.buf)
				x.release()
			}
			b.SetBytes(int64(size))
		})
	}
}

// BenchmarkHTTP is a round trip over loopback TCP on one connection, the client reading as
// cheaply as it can. "heavy" queries go through the lane.
func BenchmarkHTTP(b *testing.B) {
	for _, c := range []struct {
		name, body string
		logs       int
		cost       uint64
	}{
		{"chainId", benchChainID, 0, 0},
		{"logs20", benchLogs, 20, 0},
		{"logs20heavy", benchLogs, 20, laneCost},
		{"logs1000", benchLogs, 1000, 0},
		{"logs10000", benchLogs, 10_000, 0},
		{"logs10000heavy", benchLogs, 10_000, laneCost},
	} {
		b.Run(c.name, func(b *testing.B) {
			server, err := New(Options{Store: &logStore{fakeStore: newFakeStore(b, 8), logs: c.logs, cost: c.cost}, Network: testNetwork()})
			if err != nil {
				b.Fatal(err)
			}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			go func() { _ = server.Serve(listener) }()
			defer func() { _ = server.Shutdown(context.Background()) }()
			conn, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			request := fmt.Appendf(nil, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(c.body), c.body)
			reader := bufio.NewReaderSize(conn, 64<<10)
			b.ReportAllocs()
			var size int
			for b.Loop() {
				if _, err := conn.Write(request); err != nil {
					b.Fatal(err)
				}
				if size, err = readResponse(reader); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(size))
		})
	}
}

// readResponse reads one response with a length and throws it away.
func readResponse(r *bufio.Reader) (size int, err error) {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if size, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, err
			}
		}
		if len(line) <= 2 {
			break
		}
	}
	_, err = io.CopyN(io.Discard, r, int64(size))
	return size, err
}

// BenchmarkCheckJSON is the check of a request and of one as large as they get.
func BenchmarkCheckJSON(b *testing.B) {
	topics := bytes.Repeat([]byte(`"0x1111111111111111111111111111111111111111111111111111111111111111",`), 1000)
	large := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"topics":[[%s]]}]}`, bytes.TrimSuffix(topics, []byte(",")))
	for _, body := range [][]byte{[]byte(benchLogs), large} {
		b.Run(fmt.Sprintf("size=%d", len(body)), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := checkJSON(body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
