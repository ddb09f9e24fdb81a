package ethjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/leani-go/leani/chain"
	"github.com/leani-go/leani/internal/chainfixture"
	"github.com/leani-go/leani/internal/shareddata"
)

// The case of the conformance suite, with the head of its chain. RPC-081, RPC-082
func TestConfigConformance(t *testing.T) {
	dialogue, err := os.ReadFile(shareddata.Path(t, "execution-apis", "tests", "eth_config", "get-config.io"))
	if err != nil {
		t.Fatal(err)
	}
	_, answer, ok := bytes.Cut(dialogue, []byte("<< "))
	if !ok {
		t.Fatal("the case has no response")
	}
	var response struct{ Result json.RawMessage }
	if err := json.Unmarshal(answer, &response); err != nil {
		t.Fatal(err)
	}
	chainBlocks := chainfixture.ConformanceChain(t)
	got, err := NewEncoder(conformanceNetwork(t)).AppendConfig(nil, chainBlocks[len(chainBlocks)-1].Timestamp)
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, "eth_config", got, response.Result)
}

// Mainnet just after Prague, by the figures and addresses of the EIPs. RPC-081, RPC-082,
// RPC-083, RPC-084
func TestConfigMainnet(t *testing.T) {
	got, err := NewEncoder(chain.Mainnet()).AppendConfig(nil, 1_746_612_311)
	if err != nil {
		t.Fatal(err)
	}
	precompiles := `
		"ECREC": "0x0000000000000000000000000000000000000001",
		"SHA256": "0x0000000000000000000000000000000000000002",
		"RIPEMD160": "0x0000000000000000000000000000000000000003",
		"ID": "0x0000000000000000000000000000000000000004",
		"MODEXP": "0x0000000000000000000000000000000000000005",
		"BN254_ADD": "0x0000000000000000000000000000000000000006",
		"BN254_MUL": "0x0000000000000000000000000000000000000007",
		"BN254_PAIRING": "0x0000000000000000000000000000000000000008",
		"BLAKE2F": "0x0000000000000000000000000000000000000009",
		"KZG_POINT_EVALUATION": "0x000000000000000000000000000000000000000a",
		"BLS12_G1ADD": "0x000000000000000000000000000000000000000b",
		"BLS12_G1MSM": "0x000000000000000000000000000000000000000c",
		"BLS12_G2ADD": "0x000000000000000000000000000000000000000d",
		"BLS12_G2MSM": "0x000000000000000000000000000000000000000e",
		"BLS12_PAIRING_CHECK": "0x000000000000000000000000000000000000000f",
		"BLS12_MAP_FP_TO_G1": "0x0000000000000000000000000000000000000010",
		"BLS12_MAP_FP2_TO_G2": "0x0000000000000000000000000000000000000011"`
	const p256 = `, "P256VERIFY": "0x0000000000000000000000000000000000000100"`
	system := `
		"BEACON_ROOTS_ADDRESS": "0x000f3df6d732807ef1319fb7b8bb8522d0beac02",
		"CONSOLIDATION_REQUEST_PREDEPLOY_ADDRESS": "0x0000bbddc7ce488642fb579f8b00f3a590007251",
		"DEPOSIT_CONTRACT_ADDRESS": "0x00000000219ab540356cbb839cbe05303d7705fa",
		"HISTORY_STORAGE_ADDRESS": "0x0000f90827f1c53a10cb7a02335b175320002935",
		"WITHDRAWAL_REQUEST_PREDEPLOY_ADDRESS": "0x00000961ef480eb55e80d19ad83579a64c007002"`
	sameJSON(t, "eth_config", got, []byte(`{
		"current": {"activationTime": 1746612311, "chainId": "0x1", "forkId": "0xc376cf8b",
			"blobSchedule": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5007716},
			"precompiles": {`+precompiles+`}, "systemContracts": {`+system+`}},
		"next": {"activationTime": 1764798551, "chainId": "0x1", "forkId": "0x5167e2a6",
			"blobSchedule": {"target": 6, "max": 9, "baseFeeUpdateFraction": 5007716},
			"precompiles": {`+precompiles+p256+`}, "systemContracts": {`+system+`}},
		"last": {"activationTime": 1767747671, "chainId": "0x1", "forkId": "0x07c9462e",
			"blobSchedule": {"target": 14, "max": 21, "baseFeeUpdateFraction": 11684671},
			"precompiles": {`+precompiles+p256+`}, "systemContracts": {`+system+`}}}`))
}

// RPC-086, RPC-087
func TestConfigRefuses(t *testing.T) {
	for _, c := range []struct {
		network *chain.Network
		time    uint64
		want    error
	}{
		{chain.Mainnet(), cancunTime - 1, chain.ErrPredatesSchedule},
		{chain.UnscheduledNetwork("sepolia", 11_155_111), pragueTime, chain.ErrScheduleUnavailable},
	} {
		if got, err := NewEncoder(c.network).AppendConfig([]byte("kept"), c.time); !errors.Is(err, c.want) || string(got) != "kept" {
			t.Errorf("%s at %d: got %q, %v; want %v", c.network.Name(), c.time, got, err, c.want)
		}
	}
}
