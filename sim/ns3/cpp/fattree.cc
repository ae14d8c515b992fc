// A fat-tree of point-to-point links carrying paced UDP flows in ns-3 3.37:
// the peer that Weft's simulator is measured beside. Prints one JSON object.
//
// Nodes have the numbers and links that topo.FatTree gives them. What costs
// time and is no part of the workload is left out: trace sinks, queue
// disciplines, IPv6, checksums. Packets are counted by ns-3's own counters.

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

namespace
{

const uint16_t receiverPort = 4791;
const uint32_t ipAndUdpBytes = 28;

// The links are /30 networks in the order they are made, host links first and
// the host's end first: host i is 10.0.0.0 + 4i + 1.
const uint32_t network = 0x0a000000;

Ipv4Address
HostAddress(uint32_t host)
{
    return Ipv4Address(network + 4 * host + 1);
}

const uint16_t firstPort = 10000; // of the flows of a host
const uint32_t maxFlows = 50000;  // of a host at once

// routed has the ports up at the ToR and at the leaf of every flow, by host and source port;
// where it is empty, a hash chooses them.
std::vector<std::vector<std::array<uint32_t, 2>>> routed;

// FlowHash spreads flows over the equal ways up by a hash of addresses and
// ports, as switches do. ns-3's Ipv4GlobalRouting draws a way for every packet
// instead and walks a list of all routes to find the candidates: with it this
// program is about a quarter slower.
class FlowHash : public Ipv4RoutingProtocol
{
  public:
    // The hosts first … first+count-1 are below this node, perPort of them
    // behind each port. A host is below itself. Tiers count from the hosts up.
    FlowHash(uint32_t tier, uint32_t first, uint32_t count, uint32_t perPort, uint32_t salt)
        : m_tier(tier), m_first(first), m_count(count), m_perPort(perPort), m_salt(salt)
    {
    }

    void AddDown(Ptr<Ipv4Route> r) { m_down.push_back(r); }
    void AddUp(Ptr<Ipv4Route> r) { m_up.push_back(r); }

    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>, const Ipv4Header&, Ptr<NetDevice>, Socket::SocketErrno& err) override
    {
        err = Socket::ERROR_NOTERROR;
        return m_up[0]; // only hosts send, and a host has one port
    }

    bool RouteInput(Ptr<const Packet> p, const Ipv4Header& ip, Ptr<const NetDevice> in, UnicastForwardCallback forward,
                    MulticastForwardCallback, LocalDeliverCallback deliver, ErrorCallback) override
    {
        // Hosts before m_first wrap around to large numbers: not below.
        uint32_t host = (ip.GetDestination().Get() - network) / 4 - m_first;
        if (host >= m_count)
        {
            uint32_t port = routed.empty() ? Hash(p, ip) % m_up.size() : Routed(p, ip);
            forward(m_up[port], p, ip);
        }
        else if (!m_down.empty())
        {
            forward(m_down[host / m_perPort], p, ip);
        }
        else
        {
            deliver(p, ip, m_ipv4->GetInterfaceForDevice(in));
        }
        return true;
    }

    void SetIpv4(Ptr<Ipv4> ipv4) override { m_ipv4 = ipv4; }
    void NotifyInterfaceUp(uint32_t) override {}
    void NotifyInterfaceDown(uint32_t) override {}
    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override {}

  private:
    uint32_t Hash(Ptr<const Packet> p, const Ipv4Header& ip) const
    {
        uint32_t ports = 0; // UDP starts with both; the IP header is already off
        p->CopyData(reinterpret_cast<uint8_t*>(&ports), sizeof ports);
        uint64_t x = uint64_t(ip.GetSource().Get()) << 32 | ip.GetDestination().Get();
        x = (x ^ ports) * 0x9e3779b97f4a7c15 + m_salt;
        x = (x ^ x >> 32) * 0xd6e8feb86659fd93;
        return x >> 32;
    }

    uint32_t Routed(Ptr<const Packet> p, const Ipv4Header& ip) const
    {
        uint8_t port[2]; // UDP starts with it
        p->CopyData(port, sizeof port);
        return routed[(ip.GetSource().Get() - network) / 4][(port[0] << 8 | port[1]) - firstPort][m_tier - 1];
    }

    uint32_t m_tier, m_first, m_count, m_perPort, m_salt;
    std::vector<Ptr<Ipv4Route>> m_down, m_up;
    Ptr<Ipv4> m_ipv4;
};

// Fabric is the k-ary fat-tree.
class Fabric
{
  public:
    Fabric(uint32_t k, const PointToPointHelper& link)
        : m_link(link), m_addresses(Ipv4Address(network), "255.255.255.252")
    {
        const uint32_t half = k / 2, tors = k * half, hosts = tors * half;
        AddTier(0, hosts, 1, 1, 1);
        AddTier(1, tors, 1, half, 1);
        AddTier(2, tors, half, half * half, half);
        AddTier(3, half * half, half * half, hosts, half * half);
        const uint32_t tor = hosts, leaf = tor + tors, spine = leaf + tors;
        for (uint32_t i = 0; i < hosts; i++)
        {
            Connect(i, tor + i / half);
        }
        for (uint32_t i = 0; i < tors * half; i++)
        {
            Connect(tor + i / half, leaf + i / half / half * half + i % half);
        }
        for (uint32_t i = 0; i < tors * half; i++)
        {
            Connect(leaf + i / half, spine + i % (half * half));
        }
        m_hosts = hosts;
    }

    uint32_t Hosts() const { return m_hosts; }
    Ptr<Node> GetNode(uint32_t i) const { return m_nodes.Get(i); }

    // Hops is the number of packets whose transmission has begun, over all
    // ports: a device passes every packet through its queue.
    uint64_t Hops() const
    {
        uint64_t n = 0;
        for (const auto& q : m_queues)
        {
            n += q->GetTotalReceivedPackets() - q->GetNPackets();
        }
        return n;
    }

    // UsedPorts is the number of ports that have sent anything.
    uint64_t UsedPorts() const
    {
        return std::count_if(m_queues.begin(), m_queues.end(), [](auto& q) { return q->GetTotalReceivedPackets() > 0; });
    }

    uint64_t Dropped() const
    {
        uint64_t n = 0;
        for (const auto& q : m_queues)
        {
            n += q->GetTotalDroppedPackets();
        }
        return n;
    }

  private:
    // AddTier makes n nodes. Groups of them (a pod's leaves, all spines) have
    // the same hosts below: count of them, perPort behind each port.
    void AddTier(uint32_t number, uint32_t n, uint32_t group, uint32_t count, uint32_t perPort)
    {
        NodeContainer tier(n);
        InternetStackHelper stack;
        stack.SetIpv6StackInstall(false);
        stack.Install(tier);
        for (uint32_t i = 0; i < n; i++)
        {
            auto routing = Create<FlowHash>(number, i / group * count, count, perPort, tier.Get(i)->GetId());
            tier.Get(i)->GetObject<Ipv4>()->SetRoutingProtocol(routing);
            m_routing.push_back(routing);
        }
        m_nodes.Add(tier);
    }

    void Connect(uint32_t low, uint32_t high)
    {
        auto devices = m_link.Install(m_nodes.Get(low), m_nodes.Get(high));
        auto ends = m_addresses.Assign(devices);
        m_addresses.NewNetwork();
        for (uint32_t i = 0; i < 2; i++)
        {
            m_queues.push_back(DynamicCast<PointToPointNetDevice>(devices.Get(i))->GetQueue());
        }
        m_routing[low]->AddUp(Via(devices.Get(0), ends.GetAddress(0), ends.GetAddress(1)));
        m_routing[high]->AddDown(Via(devices.Get(1), ends.GetAddress(1), ends.GetAddress(0)));
    }

    static Ptr<Ipv4Route> Via(Ptr<NetDevice> out, Ipv4Address from, Ipv4Address to)
    {
        auto r = Create<Ipv4Route>();
        r->SetOutputDevice(out);
        r->SetSource(from);
        r->SetGateway(to);
        return r;
    }

    uint32_t m_hosts;
    PointToPointHelper m_link;
    Ipv4AddressHelper m_addresses;
    NodeContainer m_nodes;
    std::vector<Ptr<FlowHash>> m_routing; // by node
    std::vector<Ptr<Queue<Packet>>> m_queues;
};

uint64_t sent;
uint64_t received;

// Flow sends bytes in packets of payload bytes (the last may be shorter), one
// every gap. Its socket lives only while it sends, because ns-3 searches a
// host's sockets one by one.
struct Flow
{
    Ptr<Node> node;
    InetSocketAddress from, to;
    uint64_t bytes;
    uint32_t payload;
    Time start, gap;
    Ptr<Socket> socket;

    void Start()
    {
        socket = Socket::CreateSocket(node, UdpSocketFactory::GetTypeId());
        NS_ABORT_MSG_IF(socket->Bind(from) != 0, "host " << node->GetId() << " has too many flows at once");
        socket->Connect(to);
        Send();
    }

    void Send()
    {
        uint32_t n = std::min<uint64_t>(bytes, payload);
        NS_ABORT_MSG_IF(socket->Send(Create<Packet>(n)) < 0, "host " << node->GetId() << " cannot send");
        sent++;
        bytes -= n;
        if (bytes > 0)
        {
            Simulator::Schedule(gap, &Flow::Send, this);
            return;
        }
        socket->Close();
        socket = nullptr;
    }
};

// ReadFlows reads a line for each flow: source and destination host, bytes,
// start in ns, payload bits per second, and the two ports up, below half, unless that is 0.
std::vector<Flow>
ReadFlows(const std::string& file, const Fabric& fabric, uint32_t payload, uint32_t half)
{
    routed.resize(half > 0 ? fabric.Hosts() : 0);
    std::ifstream in(file);
    NS_ABORT_MSG_IF(!in, "cannot read " << file);
    std::vector<Flow> flows;
    std::vector<uint32_t> count(fabric.Hosts());
    uint64_t src, dst, bytes, start, rate;
    while (in >> src >> dst >> bytes >> start >> rate)
    {
        NS_ABORT_MSG_IF(src >= count.size() || dst >= count.size() || rate == 0, "flow " << flows.size() << " is impossible");
        if (half > 0)
        {
            std::array<uint32_t, 2> up{};
            NS_ABORT_MSG_IF(!(in >> up[0] >> up[1]) || up[0] >= half || up[1] >= half || count[src] == maxFlows, "flow " << flows.size() << " has no port up");
            routed[src].push_back(up);
        }
        uint16_t port = firstPort + count[src]++ % maxFlows;
        Time gap = PicoSeconds(uint64_t(payload * 8e12 / rate + 0.5));
        flows.push_back({fabric.GetNode(src), {HostAddress(src), port}, {HostAddress(dst), receiverPort},
                         bytes, payload, NanoSeconds(start), gap, nullptr});
    }
    NS_ABORT_MSG_IF(!in.eof(), "cannot read flow " << flows.size());
    return flows;
}

void
Receive(Ptr<Socket> s)
{
    while (s->Recv())
    {
        received++;
    }
}

// Arrivals notes when the last packet of each flow has arrived. Packets are told apart by
// their source, so that a host has at most maxFlows flows.
class Arrivals
{
  public:
    Arrivals(const std::vector<Flow>& flows, uint32_t hosts) : m_flow(hosts), m_missing(flows.size()), m_last(flows.size(), -1)
    {
        for (uint32_t i = 0; i < flows.size(); i++)
        {
            auto& own = m_flow[flows[i].node->GetId()];
            NS_ABORT_MSG_IF(own.size() == maxFlows, "host " << flows[i].node->GetId() << " has too many flows");
            own.push_back(i);
            m_missing[i] = (flows[i].bytes + flows[i].payload - 1) / flows[i].payload;
        }
    }

    void Receive(Ptr<Socket> s)
    {
        Address from;
        while (s->RecvFrom(from))
        {
            received++;
            auto source = InetSocketAddress::ConvertFrom(from);
            uint32_t flow = m_flow[(source.GetIpv4().Get() - network) / 4][source.GetPort() - firstPort];
            if (--m_missing[flow] == 0)
            {
                m_last[flow] = Simulator::Now().GetPicoSeconds();
            }
        }
    }

    void Print(std::ostream& out) const
    {
        for (uint32_t i = 0; i < m_last.size(); i++)
        {
            out << (i > 0 ? "," : "") << m_last[i];
        }
    }

  private:
    std::vector<std::vector<uint32_t>> m_flow; // by host and source port
    std::vector<uint64_t> m_missing;           // packets, by flow
    std::vector<int64_t> m_last;               // in ps; -1: some packet has not arrived
};

// Read reads a clock in nanoseconds.
int64_t
Read(clockid_t clock)
{
    timespec t{};
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// PeakMemory is in bytes. getrusage would also count the process that started
// this one, from before it became this program.
uint64_t
PeakMemory()
{
    std::ifstream status("/proc/self/status");
    std::string word;
    uint64_t kib = 0;
    while (status >> word)
    {
        if (word == "VmHWM:" && status >> kib)
        {
            break;
        }
    }
    return kib * 1024;
}

} // namespace

int
main(int argc, char* argv[])
{
    uint32_t k = 4, payload = 1000;
    uint64_t rate = 100000000000, delay = 1000, stop = 1000000;
    std::string file = "/dev/stdin";
    bool times = false, ports = false;
    CommandLine cmd;
    cmd.AddValue("k", "ports of a switch, even", k);
    cmd.AddValue("rate", "of a link, bits per second", rate);
    cmd.AddValue("delay", "of a link, nanoseconds", delay);
    cmd.AddValue("payload", "UDP payload of a packet, bytes", payload);
    cmd.AddValue("stop", "end of the run, nanoseconds", stop);
    cmd.AddValue("flows", "file of flows", file);
    cmd.AddValue("arrivals", "print when the last packet of each flow arrived", times);
    cmd.AddValue("routed", "flows say their ports up", ports);
    cmd.Parse(argc, argv);

    // At 100 Gb/s a byte takes 80 ps; the default nanoseconds would round.
    Time::SetResolution(Time::PS);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate)));
    link.SetDeviceAttribute("Mtu", UintegerValue(payload + ipAndUdpBytes));
    link.SetChannelAttribute("Delay", TimeValue(NanoSeconds(delay)));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("1000000000p")); // loses nothing
    link.DisableFlowControl(); // otherwise a queue discipline sits before every queue
    Fabric fabric(k, link);

    auto flows = ReadFlows(file, fabric, payload, ports ? k / 2 : 0);
    Arrivals arrivals(times ? flows : std::vector<Flow>(), fabric.Hosts());
    std::vector<Ptr<Socket>> receivers;
    for (uint32_t i = 0; i < fabric.Hosts(); i++)
    {
        auto s = Socket::CreateSocket(fabric.GetNode(i), UdpSocketFactory::GetTypeId());
        s->Bind(InetSocketAddress(Ipv4Address::GetAny(), receiverPort));
        s->SetRecvCallback(times ? MakeCallback(&Arrivals::Receive, &arrivals) : MakeCallback(&Receive));
        receivers.push_back(s);
    }
    for (auto& f : flows)
    {
        Simulator::ScheduleWithContext(f.node->GetId(), f.start, &Flow::Start, &f);
    }

    Simulator::Stop(NanoSeconds(stop));
    int64_t wall = Read(CLOCK_MONOTONIC), cpu = Read(CLOCK_PROCESS_CPUTIME_ID);
    Simulator::Run();
    wall = Read(CLOCK_MONOTONIC) - wall;
    cpu = Read(CLOCK_PROCESS_CPUTIME_ID) - cpu;

    std::cout << "{\"packet_hops\":" << fabric.Hops() << ",\"sent\":" << sent << ",\"received\":" << received
              << ",\"dropped\":" << fabric.Dropped() << ",\"used_ports\":" << fabric.UsedPorts()
              << ",\"events\":" << Simulator::GetEventCount()
              << ",\"simulated_ns\":" << Simulator::Now().GetNanoSeconds() << ",\"wall_ns\":" << wall
              << ",\"cpu_ns\":" << cpu << ",\"peak_memory\":\"" << PeakMemory() << "B\"";
    if (times)
    {
        std::cout << ",\"arrived_ps\":[";
        arrivals.Print(std::cout);
        std::cout << "]";
    }
    std::cout << "}" << std::endl;
}
